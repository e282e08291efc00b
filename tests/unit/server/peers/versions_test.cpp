#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "server/peers/handshake.hpp"
#include "server/peers/message_codec.hpp"
#include "support/peers/fake_peer.hpp"
#include "support/peers/test_peer.hpp"
#include "support/wait_until.hpp"

namespace tenure::server::peers {
namespace {

using test::eventually;
using test::FakePeer;
using test::TestPeer;

constexpr std::string_view secret = "0123456789abcdef";

PeerOptions member(std::uint64_t id) {
  auto options = TestPeer::options(id);
  options.self.secret = secret;
  return options;
}

std::optional<raft::Versions> versions_of(TestPeer& end, std::uint64_t peer) {
  return end.on_loop([&] { return end.transport().versions_of(raft::MemberId{peer}); });
}

/// Member 2 as a program that knows version 2 of the protocol only.
std::vector<Frame> answer_as_version_2(const ReceivedFrame& frame) {
  std::vector<Frame> frames;
  auto hello = decode_hello(frame);
  if (!hello) {
    return frames;
  }
  if (hello->version != 2) {
    frames.push_back(encode(Refusal{.reason = Reason::version, .text = "speaks version 2"}));
    return frames;
  }
  Welcome welcome{.version = 2, .nonce = make_nonce()};
  welcome.proof = prove(End::acceptor, std::string(secret), *hello, welcome);
  frames.push_back(encode(welcome));
  return frames;
}

/// The frame as its receiver reads it.
ReceivedFrame arrived(const Frame& frame) {
  return {.meta = std::string_view(frame.head).substr(frame_prefix_bytes), .body = {}};
}

TEST(PeersVersions, members_announce_their_cluster_versions_to_each_other) {
  auto one = member(1);
  auto two = member(2);
  one.self.versions = {.newest = core::ClusterVersion{7}, .wanted = core::ClusterVersion{5}};
  TestPeer initiator(one);
  TestPeer acceptor(two);

  initiator.set_members({{2, acceptor.address()}});

  EXPECT_TRUE(
      eventually([&] { return versions_of(initiator, 2) == std::optional(two.self.versions); }));
  EXPECT_TRUE(
      eventually([&] { return versions_of(acceptor, 1) == std::optional(one.self.versions); }));
}

TEST(PeersVersions, versions_of_a_peer_are_known_while_it_is_connected) {
  TestPeer initiator(member(1));
  auto acceptor = std::make_unique<TestPeer>(member(2));
  initiator.set_members({{2, acceptor->address()}});
  ASSERT_TRUE(eventually([&] { return versions_of(initiator, 2).has_value(); }));

  acceptor.reset();

  EXPECT_TRUE(eventually([&] { return !versions_of(initiator, 2).has_value(); }));
}

// During a rolling upgrade, members of both versions communicate.
TEST(PeersVersions, an_acceptor_of_version_2_gets_a_hello_of_version_2) {
  const FakePeer old(answer_as_version_2);
  TestPeer initiator(member(1));

  initiator.set_members({{2, old.address()}});

  EXPECT_TRUE(eventually([&] { return versions_of(initiator, 2) == versions_before_3; }))
      << initiator.reports.all();
}

TEST(PeersVersions, an_initiator_of_version_2_gets_a_welcome_of_version_2) {
  const auto options = member(2);
  Hello hello{.version = 2,
              .cluster = options.self.cluster,
              .initiator = raft::MemberId{1},
              .acceptor = raft::MemberId{2},
              .nonce = make_nonce()};
  const auto frame = encode(hello);

  const auto read = decode_hello(arrived(frame));

  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(check_hello(*read, options.self).reason, Reason{});
  EXPECT_EQ(read->versions, versions_before_3);
  // Version 2 rejects bytes after its last known field.
  Welcome welcome{.version = 2, .nonce = make_nonce()};
  auto longer = welcome;
  longer.version = 3;
  EXPECT_LT(encode(welcome).head.size(), encode(longer).head.size());
}

TEST(PeersVersions, an_initiator_with_a_newer_protocol_is_understood) {
  const auto frame = encode(Hello{.version = newest_protocol + 1,
                                  .cluster = raft::ClusterId{77},
                                  .initiator = raft::MemberId{1},
                                  .acceptor = raft::MemberId{2},
                                  .nonce = make_nonce(),
                                  .versions = raft::newest_versions()});
  const auto longer = make_frame(std::string(arrived(frame).meta) + "fields of the next version");

  const auto hello = decode_hello(arrived(longer));

  ASSERT_TRUE(hello.has_value());
  EXPECT_EQ(check_hello(*hello, member(2).self).reason, Reason{});
  EXPECT_EQ(hello->versions, raft::newest_versions());
}

TEST(PeersVersions, invalid_cluster_versions_are_refused) {
  Hello hello{.nonce = make_nonce()};
  hello.versions = {.newest = core::version_1, .wanted = core::version_2};
  EXPECT_FALSE(decode_hello(arrived(encode(hello))).has_value());
  hello.versions = {};
  EXPECT_FALSE(decode_hello(arrived(encode(hello))).has_value());
}

// Otherwise a man in the middle could downgrade the version of a member.
TEST(PeersVersions, the_proof_covers_the_cluster_versions) {
  const Hello hello{.nonce = "n", .versions = raft::newest_versions()};
  auto older = hello;
  older.versions = versions_before_3;
  const Welcome welcome{.nonce = "m"};

  EXPECT_NE(prove(End::initiator, "secret", hello, welcome),
            prove(End::initiator, "secret", older, welcome));
}

}  // namespace
}  // namespace tenure::server::peers
