#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "server/peers/peer_transport.hpp"
#include "support/peers/tcp_proxy.hpp"
#include "support/peers/test_peer.hpp"
#include "support/wait_until.hpp"

namespace tenure::server::peers {
namespace {

using raft::AppendEntries;
using raft::AppendResult;
using raft::Index;
using raft::InstallSnapshot;
using raft::MemberId;
using raft::Term;
using test::eventually;
using test::TcpProxy;
using test::TestPeer;

raft::Bytes bytes_of(std::string text) {
  return std::make_shared<const std::string>(std::move(text));
}

raft::Message numbered(std::uint64_t number) {
  return AppendResult{.last = Index{number}};
}

/// The numbers in the order of their arrival.
std::vector<std::uint64_t> numbers(const TestPeer& end) {
  std::vector<std::uint64_t> all;
  for (const auto& one : end.received()) {
    if (const auto* result = std::get_if<AppendResult>(&one.message)) {
      all.push_back(result->last.get());
    }
  }
  return all;
}

std::string any_bytes(std::size_t size) {
  std::string bytes(size, '\0');
  std::uint32_t state = 12345;
  for (auto& byte : bytes) {
    state = state * 1664525U + 1013904223U;
    byte = static_cast<char>(state >> 24);
  }
  return bytes;
}

InstallSnapshot snapshot_of(raft::Bytes body, std::uint64_t index = 9) {
  return {.term = Term{4},
          .snapshot = {.mark = {.index = Index{index},
                                .term = Term{3},
                                .configuration_index = Index{2},
                                .configuration = "members"},
                       .body = std::move(body)}};
}

std::vector<InstallSnapshot> snapshots(const TestPeer& end) {
  std::vector<InstallSnapshot> all;
  for (const auto& one : end.received()) {
    if (const auto* snapshot = std::get_if<InstallSnapshot>(&one.message)) {
      all.push_back(*snapshot);
    }
  }
  return all;
}

TEST(PeersTransport, messages_arrive_in_order_with_their_sender) {
  TestPeer one(TestPeer::options(1));
  TestPeer two(TestPeer::options(2));
  one.set_members({{1, one.address()}, {2, two.address()}});
  two.set_members({{1, one.address()}, {2, two.address()}});
  ASSERT_TRUE(eventually([&] { return one.is_connected_to(2) && two.is_connected_to(1); }));

  constexpr std::uint64_t many = 2000;
  for (std::uint64_t i = 0; i < many; ++i) {
    one.send(2, numbered(i));
    two.send(1, numbered(i));
  }

  ASSERT_TRUE(eventually([&] { return one.received_count() == many; }));
  ASSERT_TRUE(eventually([&] { return two.received_count() == many; }));
  for (std::uint64_t i = 0; i < many; ++i) {
    ASSERT_EQ(numbers(two)[i], i);
    if (i % 500 != 0) {
      continue;
    }
    ASSERT_EQ(two.received()[i].sender, MemberId{1});
    ASSERT_EQ(one.received()[i].sender, MemberId{2});
  }
}

TEST(PeersTransport, entries_of_all_sizes_arrive_whole) {
  TestPeer one(TestPeer::options(1));
  TestPeer two(TestPeer::options(2));
  one.set_members({{2, two.address()}});
  ASSERT_TRUE(eventually([&] { return one.is_connected_to(2); }));
  AppendEntries sent{.term = Term{2}, .previous = Index{7}, .previous_term = Term{1}};
  for (const auto size : {0UZ, 1UZ, 1000UZ, 70'000UZ, 1'000'000UZ, 3'000'000UZ, 5UZ}) {
    sent.entries.push_back({.term = Term{2}, .payload = bytes_of(any_bytes(size))});
  }

  one.send(2, sent);

  std::vector<raft::Entry> got;
  ASSERT_TRUE(eventually([&] {
    got.clear();
    for (const auto& message : two.received()) {
      const auto& part = std::get<AppendEntries>(message.message);
      EXPECT_EQ(part.previous.get(), 7 + got.size());
      got.insert(got.end(), part.entries.begin(), part.entries.end());
    }
    return got.size() == sent.entries.size();
  }));
  for (std::size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(*got[i].payload, *sent.entries[i].payload);
  }
}

// Messages of the broken connection are not sent again: Raft tolerates loss, but the transport must
// not deliver a message twice.
TEST(PeersTransport, a_broken_connection_is_reestablished_without_duplicates) {
  TestPeer one(TestPeer::options(1));
  TestPeer two(TestPeer::options(2));
  TcpProxy proxy(two.port());
  one.set_members({{2, proxy.address()}});
  ASSERT_TRUE(eventually([&] { return one.is_connected_to(2); }));

  std::uint64_t next = 0;
  for (int round = 0; round < 3; ++round) {
    const auto connections = one.counts(2).connections;
    const auto arrived = two.received_count();
    ASSERT_TRUE(eventually([&] {
      one.send(2, numbered(next++));
      return two.received_count() > arrived;
    }));
    proxy.cut();
    ASSERT_TRUE(eventually([&] {
      one.send(2, numbered(next++));
      return one.counts(2).connections > connections && one.is_connected_to(2);
    }));
  }
  const auto arrived = two.received_count();
  ASSERT_TRUE(eventually([&] {
    one.send(2, numbered(next++));
    return two.received_count() > arrived;
  }));

  const auto got = numbers(two);
  EXPECT_TRUE(std::is_sorted(got.begin(), got.end()));
  EXPECT_EQ(std::adjacent_find(got.begin(), got.end()), got.end());
  EXPECT_TRUE(one.reports_about("peer_disconnected peer=2"));
}

TEST(PeersTransport, a_peer_that_starts_late_is_reached_and_reported_once) {
  TestPeer one(TestPeer::options(1));
  auto early = std::make_unique<TestPeer>(TestPeer::options(2));
  const auto port = early->port();
  early.reset();
  auto options = TestPeer::options(1);
  options.self.member = MemberId{3};
  options.timeouts.backoff_min = std::chrono::milliseconds(1);
  options.timeouts.backoff_max = std::chrono::milliseconds(4);
  TestPeer three(options);
  three.set_members({{2, "127.0.0.1:" + std::to_string(port)}});
  ASSERT_TRUE(eventually([&] { return three.reports_about("peer_unreachable peer=2"); }));

  TestPeer late(TestPeer::options(2), port);

  ASSERT_TRUE(eventually([&] { return three.is_connected_to(2); }));
  const auto text = three.reports.all();
  EXPECT_EQ(text.find("peer_unreachable"), text.rfind("peer_unreachable")) << text;
}

TEST(PeersTransport, messages_for_a_disconnected_peer_are_dropped_and_counted) {
  TestPeer one(TestPeer::options(1));
  one.set_members({{2, "127.0.0.1:1"}});

  one.send(2, numbered(1));
  one.send(2, snapshot_of(bytes_of("x")));
  one.send(9, numbered(1));

  EXPECT_EQ(one.counts(2).messages_dropped, 2U);
}

// A peer that does not read must cost neither memory nor time.
TEST(PeersTransport, a_full_queue_drops_messages_and_keeps_their_order) {
  auto options = TestPeer::options(1);
  options.outbox = {.messages_max = 50, .bytes_max = std::size_t{1} << 20};
  options.timeouts.silence = std::chrono::minutes(1);
  TestPeer one(options);
  TestPeer two(TestPeer::options(2));
  TcpProxy proxy(two.port());
  one.set_members({{2, proxy.address()}});
  ASSERT_TRUE(eventually([&] { return one.is_connected_to(2); }));
  proxy.clog(true);

  const auto payload = bytes_of(any_bytes(500'000));
  std::uint64_t sent = 0;
  ASSERT_TRUE(eventually([&] {
    one.send(2, AppendEntries{.previous = Index{sent++}, .entries = {{.payload = payload}}});
    return one.counts(2).messages_dropped >= 20;
  }));
  EXPECT_LT(payload.use_count(), 60) << "the payload of a dropped message is freed";
  proxy.clog(false);

  const auto passed = one.counts(2).messages_sent - 1;  // The proof counts as a message.
  ASSERT_TRUE(eventually([&] { return two.received_count() == passed; }));
  std::uint64_t last = 0;
  for (const auto& got : two.received()) {
    const auto previous = std::get<AppendEntries>(got.message).previous.get();
    EXPECT_GE(previous, last);
    last = previous;
  }
}

TEST(PeersTransport, a_silent_peer_is_detected) {
  auto options = TestPeer::options(1);
  options.timeouts.handshake = std::chrono::milliseconds(50);
  TestPeer one(options);
  TestPeer two(TestPeer::options(2));
  TcpProxy proxy(two.port());
  proxy.clog(true);

  one.set_members({{2, proxy.address()}});

  EXPECT_TRUE(eventually([&] { return one.reports_about("handshake timed out"); }));
  proxy.clog(false);
  EXPECT_TRUE(eventually([&] { return one.is_connected_to(2); }));
}

TEST(PeersTransport, the_newest_connection_of_a_member_counts) {
  TestPeer two(TestPeer::options(2));
  TestPeer first(TestPeer::options(1));
  first.set_members({{2, two.address()}});
  ASSERT_TRUE(eventually([&] { return first.is_connected_to(2); }));

  TestPeer second(TestPeer::options(1));
  second.set_members({{2, two.address()}});

  EXPECT_TRUE(eventually([&] { return first.reports_about("peer_disconnected peer=2"); }));
}

// A joining member has an empty log and knows no member, but it must reply to the leader.
TEST(PeersTransport, a_non_member_can_connect_and_is_called_back) {
  TestPeer leader(TestPeer::options(1));
  TestPeer joiner(TestPeer::options(4));
  leader.set_members({{1, leader.address()}, {4, joiner.address()}});
  joiner.set_members({});
  ASSERT_TRUE(eventually([&] { return leader.is_connected_to(4) && joiner.is_connected_to(1); }));

  leader.send(4, numbered(1));
  joiner.send(1, numbered(2));

  EXPECT_TRUE(eventually([&] { return joiner.received_count() == 1; }));
  EXPECT_TRUE(eventually([&] { return leader.received_count() == 1; }));
}

TEST(PeersTransport, connections_to_removed_members_are_closed) {
  TestPeer one(TestPeer::options(1));
  TestPeer two(TestPeer::options(2));
  one.set_members({{2, two.address()}});
  two.set_members({});
  ASSERT_TRUE(eventually([&] { return two.is_connected_to(1); }));

  one.set_members({});

  EXPECT_TRUE(eventually([&] { return !two.is_connected_to(1); }));
  EXPECT_FALSE(one.is_connected_to(2));
}

// A snapshot in transit must not delay heartbeats.
TEST(PeersTransport, a_large_snapshot_is_interleaved_with_other_messages) {
  TestPeer one(TestPeer::options(1));
  TestPeer two(TestPeer::options(2));
  one.set_members({{2, two.address()}});
  ASSERT_TRUE(eventually([&] { return one.is_connected_to(2); }));
  const auto body = bytes_of(any_bytes(std::size_t{24} << 20));

  one.send(2, snapshot_of(body));
  std::uint64_t beats = 0;
  ASSERT_TRUE(eventually([&] {
    one.send(2, numbered(beats++));
    return !snapshots(two).empty();
  }));

  const auto got = two.received();
  std::size_t before = 0;
  while (!std::holds_alternative<InstallSnapshot>(got[before].message)) {
    ++before;
  }
  EXPECT_GT(before, 10U) << "later messages arrived before the snapshot";
  const auto& snapshot = std::get<InstallSnapshot>(got[before].message);
  EXPECT_EQ(*snapshot.snapshot.body, *body);
  EXPECT_EQ(snapshot.snapshot.mark, snapshot_of(body).snapshot.mark);
  EXPECT_EQ(snapshot.term, Term{4});
  EXPECT_EQ(got[before].sender, MemberId{1});
}

TEST(PeersTransport, a_snapshot_resumes_after_a_disconnect) {
  TestPeer one(TestPeer::options(1));
  TestPeer two(TestPeer::options(2));
  TcpProxy proxy(two.port());
  one.set_members({{2, proxy.address()}});
  ASSERT_TRUE(eventually([&] { return one.is_connected_to(2); }));
  constexpr std::size_t size = std::size_t{20} << 20;
  const auto body = bytes_of(any_bytes(size));
  proxy.cut_after(proxy.bytes() + size / 2);

  one.send(2, snapshot_of(body));

  ASSERT_TRUE(eventually([&] { return !snapshots(two).empty(); }));
  EXPECT_EQ(*snapshots(two).front().snapshot.body, *body);
  EXPECT_EQ(proxy.connections(), 2U);
  EXPECT_LT(proxy.bytes(), size + (std::size_t{2} << 20)) << "the transfer restarted";
}

// R6: the leader requests the same transfer repeatedly while one is in progress.
TEST(PeersTransport, only_one_snapshot_at_a_time_goes_to_a_peer) {
  TestPeer one(TestPeer::options(1));
  TestPeer two(TestPeer::options(2));
  one.set_members({{2, two.address()}});
  ASSERT_TRUE(eventually([&] { return one.is_connected_to(2); }));
  const auto body = bytes_of(any_bytes(std::size_t{4} << 20));

  // In one step of the loop: otherwise the first could have arrived before the others are sent.
  one.on_loop([&] {
    for (const std::uint64_t index : {9U, 9U, 10U}) {
      one.transport().send(MemberId{2}, snapshot_of(body, index));
    }
  });

  ASSERT_TRUE(eventually([&] { return !snapshots(two).empty(); }));
  ASSERT_TRUE(eventually([&] {
    one.send(2, snapshot_of(body, 11));
    return snapshots(two).size() == 2;
  })) << "the next snapshot is sent after the first has arrived";
  EXPECT_EQ(snapshots(two)[0].snapshot.mark.index, Index{9});
  EXPECT_EQ(snapshots(two)[1].snapshot.mark.index, Index{11});
}

// The receiver drops messages of an old term.
TEST(PeersTransport, a_snapshot_on_its_way_arrives_in_the_newest_term) {
  TestPeer one(TestPeer::options(1));
  TestPeer two(TestPeer::options(2));
  one.set_members({{2, two.address()}});
  ASSERT_TRUE(eventually([&] { return one.is_connected_to(2); }));
  auto newer = snapshot_of(bytes_of("small"), 10);
  newer.term = Term{6};

  const auto [before, during] = one.on_loop([&] {
    auto& transport = one.transport();
    const bool is_idle = transport.takes_snapshot(MemberId{2}, Term{4});
    transport.send(MemberId{2}, snapshot_of(bytes_of(any_bytes(std::size_t{4} << 20)), 9));
    transport.send(MemberId{2}, newer);
    return std::pair(is_idle, transport.takes_snapshot(MemberId{2}, Term{5}));
  });

  EXPECT_TRUE(before);
  EXPECT_FALSE(during) << "another snapshot is accepted during a transfer";
  ASSERT_TRUE(eventually([&] { return !snapshots(two).empty(); }));
  EXPECT_EQ(snapshots(two)[0].snapshot.mark.index, Index{9});
  EXPECT_EQ(snapshots(two)[0].term, Term{6});
  EXPECT_TRUE(eventually([&] {
    return one.on_loop([&] { return one.transport().takes_snapshot(MemberId{2}, Term{6}); });
  }));
  EXPECT_FALSE(one.on_loop([&] { return one.transport().takes_snapshot(MemberId{3}, Term{6}); }))
      << "member 3 is not a peer";
}

TEST(PeersTransport, a_snapshot_beyond_the_limit_is_not_taken) {
  auto options = TestPeer::options(2);
  options.snapshot.bytes_max = 1000;
  TestPeer one(TestPeer::options(1));
  TestPeer two(options);
  one.set_members({{2, two.address()}});
  ASSERT_TRUE(eventually([&] { return one.is_connected_to(2); }));

  one.send(2, snapshot_of(bytes_of(std::string(1001, 'x'))));

  EXPECT_TRUE(eventually([&] { return one.counts(2).connections > 1; }));
  EXPECT_TRUE(snapshots(two).empty());
}

TEST(PeersTransport, a_transport_can_stop_in_the_middle_of_a_message) {
  TestPeer one(TestPeer::options(1));
  TestPeer two(TestPeer::options(2));
  one.set_members({{2, two.address()}});
  ASSERT_TRUE(eventually([&] { return one.is_connected_to(2); }));
  two.when_received = [&](const raft::Message&) { two.stop_here(); };

  for (std::uint64_t i = 0; i < 100; ++i) {
    one.send(2, numbered(i));
  }

  EXPECT_TRUE(eventually([&] { return two.received_count() == 1; }));
  two.on_loop([] {});
  EXPECT_EQ(two.received_count(), 1U);
}

}  // namespace
}  // namespace tenure::server::peers
