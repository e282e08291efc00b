#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <boost/asio/post.hpp>
#include <gtest/gtest.h>

#include <tenure/client/client.hpp>

#include "support/rpc/cluster.hpp"
#include "support/wait_until.hpp"

namespace tenure::test {
namespace {

using namespace std::chrono_literals;

/// The client library on a cluster whose leader changes.
class RpcLeader : public ::testing::Test {
 protected:
  [[nodiscard]] Client connect(std::vector<std::size_t> which = {}) const {
    return tenure::connect(cluster.url(std::move(which)), {.request_timeout = 10s}).value();
  }
  /// Number of waiters of `a` in the state of this member.
  [[nodiscard]] std::size_t waiters(std::size_t member) {
    std::size_t count = 0;
    cluster.store(member).look(
        [&](const server::View& view) { count = view.state.locks.waits().size(); });
    return count;
  }

  RpcCluster cluster;
};

TEST_F(RpcLeader, the_leader_is_found_through_any_member_even_if_the_url_omits_it) {
  for (const std::size_t member : {0U, 1U, 2U}) {
    auto client = connect({member});
    EXPECT_TRUE(client.mutex("a").lock()) << member;
  }
}

TEST_F(RpcLeader, connect_waits_for_a_leader) {
  cluster.depose();
  auto connecting = std::async(std::launch::async, [this] { return connect(); });
  EXPECT_EQ(connecting.wait_for(50ms), std::future_status::timeout);

  cluster.elect(2);

  EXPECT_TRUE(connecting.get().mutex("a").lock());
}

TEST_F(RpcLeader, connect_without_a_leader_names_the_members_it_asked) {
  cluster.depose();

  const auto refused = tenure::connect(cluster.url(), {.request_timeout = 200ms});

  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error(), Errc::unavailable);
  EXPECT_NE(refused.error().detail.find("does not lead"), std::string::npos)
      << refused.error().detail;
}

// 002.103: while a lock is held, and 002.108: tokens grow across it.
TEST_F(RpcLeader, a_leader_change_is_invisible_to_a_holder) {
  auto ann = connect();
  auto held = ann.mutex("a").lock().value();
  const auto first = held.token();

  for (const std::size_t next : {1U, 2U, 0U}) {
    cluster.move(next);
    EXPECT_TRUE(held.owns_lock());
    EXPECT_TRUE(held.extend());
  }

  EXPECT_TRUE(held.unlock());
  auto again = ann.mutex("a").lock().value();
  EXPECT_GT(again.token(), first);
}

// 002.103: while one waits. The wait was begun under another leader; nothing is granted twice.
TEST_F(RpcLeader, a_leader_change_keeps_the_order_of_waiters) {
  auto ann = connect();
  auto held = std::make_optional(ann.mutex("a").lock().value());
  std::vector<Client> clients;
  std::vector<std::future<std::pair<int, FencingToken>>> waiting;
  std::atomic<int> turn = 0;
  for (std::size_t index = 0; index < 3; ++index) {
    clients.push_back(connect());
    waiting.push_back(std::async(std::launch::async, [&turn, client = clients.back()] {
      auto guard = client.mutex("a").lock().value();
      const auto mine = std::pair(++turn, guard.token());
      EXPECT_TRUE(guard.unlock());
      return mine;
    }));
    ASSERT_TRUE(eventually([&] { return waiters(0) == index + 1; }));
  }

  cluster.move(1);
  EXPECT_EQ(waiters(1), 3U);
  cluster.depose();
  cluster.elect(2);
  EXPECT_EQ(waiters(2), 3U);
  EXPECT_TRUE(held->unlock());

  FencingToken last{};
  for (int index = 0; index < 3; ++index) {
    const auto [order, token] = waiting[static_cast<std::size_t>(index)].get();
    EXPECT_EQ(order, index + 1);
    EXPECT_GT(token, last);
    last = token;
  }
}

// The grant was decided by the old leader and its answer lost with it: the same request gets it.
TEST_F(RpcLeader, a_grant_whose_reply_died_with_the_leader_is_reported_by_the_next) {
  auto ann = connect();
  auto bob = connect();
  auto held = ann.mutex("a").lock().value();
  auto waiting = std::async(std::launch::async, [&] { return bob.mutex("a").lock(); });
  ASSERT_TRUE(eventually([&] { return waiters(0) == 1; }));
  cluster.depose();
  // Granted while bob is not connected to a leader.
  cluster.store(1).lead(true);
  std::optional<core::LeaseId> holder;
  cluster.store(1).look(
      [&](const server::View& view) { holder = view.state.locks.holds().begin()->second->lease; });
  (void)cluster.store(1).ask(core::Release{.lease = *holder, .what = core::Target{"a", {}}});
  EXPECT_EQ(waiters(1), 0U);

  cluster.elect(1);

  const auto granted = waiting.get();
  ASSERT_TRUE(granted);
  EXPECT_TRUE(granted->owns_lock());
}

// 002.103: while a lease is renewed.
TEST_F(RpcLeader, a_leader_change_during_renewals_loses_no_lease) {
  auto ann = connect();
  auto held = ann.mutex("a", {.ttl = 2s}).lock().value();
  const auto lost = held.lost();
  const auto end = std::chrono::steady_clock::now() + 3s;

  for (std::size_t next = 1; std::chrono::steady_clock::now() < end; ++next) {
    cluster.move(next % 3);
    EXPECT_TRUE(ann.mutex("b").lock());
  }

  EXPECT_FALSE(lost.stop_requested());
  EXPECT_TRUE(held.owns_lock());
}

TEST_F(RpcLeader, a_new_leader_reports_leases_that_ended_earlier) {
  auto ann = connect();
  auto held = ann.mutex("a").lock().value();
  const auto lost = held.lost();
  cluster.depose();
  cluster.store(1).lead(true);
  std::optional<core::LeaseId> holder;
  cluster.store(1).look(
      [&](const server::View& view) { holder = view.state.locks.holds().begin()->second->lease; });
  (void)cluster.store(1).ask(core::RevokeLease{.lease = *holder});

  cluster.elect(1);

  EXPECT_TRUE(eventually([&] { return lost.stop_requested(); }));
  EXPECT_FALSE(held.owns_lock());
}

// 002.106: without gap or duplicate.
TEST_F(RpcLeader, a_watch_survives_a_leader_change_without_gap_or_duplicate) {
  auto ann = connect();
  auto bob = connect();
  auto watch = ann.watch("a").value();
  std::vector<Revision> revisions;
  std::size_t expected = 0;

  for (std::size_t round = 0; round < 20; ++round) {
    auto guard = bob.mutex("a").lock().value();
    EXPECT_TRUE(guard.unlock());
    expected += 2;
    if (round % 4 == 3) {
      cluster.move((round / 4 + 1) % 3);
    }
  }
  while (revisions.size() < expected) {
    const auto event = watch.next_for(test_timeout);
    ASSERT_TRUE(event) << to_string(event.error());
    EXPECT_EQ(event->type,
              revisions.size() % 2 == 0 ? LockEventType::granted : LockEventType::released);
    revisions.push_back(event->revision);
  }

  EXPECT_TRUE(std::ranges::is_sorted(revisions));
  EXPECT_EQ(std::ranges::adjacent_find(revisions), revisions.end());
  EXPECT_FALSE(watch.next_for(20ms));
}

// 002.106: what happened is forgotten before the watch comes back.
TEST_F(RpcLeader, a_watch_of_a_compacted_revision_fails) {
  auto ann = connect();
  auto watch = ann.watch("a").value();
  auto guard = ann.mutex("a").lock().value();
  ASSERT_TRUE(watch.next_for(test_timeout));
  // During the connection: the watch has received everything and does not notice.
  core::Revision revision{};
  (void)cluster.leader().ask(core::GrantLease{.id = core::LeaseId{7}, .ttl = 60s});
  cluster.leader().look([&](const server::View& view) { revision = view.state.revision; });
  (void)cluster.leader().ask(core::Compact{.revision = revision});

  cluster.move(1);

  const auto event = watch.next_for(test_timeout);
  ASSERT_FALSE(event);
  EXPECT_EQ(event.error(), Errc::invalid_argument);
  EXPECT_NE(event.error().detail.find("oldest known revision"), std::string::npos);
}

// It leads on, and the Session stands: only the watches have to begin again.
TEST_F(RpcLeader, a_watch_stream_closed_by_the_server_is_reopened) {
  auto ann = connect();
  auto bob = connect();
  auto watch = ann.watch("a").value();
  ASSERT_TRUE(bob.mutex("a").lock());  // Granted and released.
  ASSERT_TRUE(watch.next_for(test_timeout));
  ASSERT_TRUE(watch.next_for(test_timeout));
  // Three times in a row, so that the backoff grows; one peek to defer it, one to name the leader.
  cluster.leader().fail_reads(3, 6);

  auto other = ann.watch("b");
  ASSERT_TRUE(other) << to_string(other.error());
  ASSERT_TRUE(bob.mutex("a").lock());
  ASSERT_TRUE(bob.mutex("b").lock());

  for (auto* one : {&watch, &*other}) {
    for (const auto type : {LockEventType::granted, LockEventType::released}) {
      const auto event = one->next_for(test_timeout);
      ASSERT_TRUE(event) << to_string(event.error());
      EXPECT_EQ(event->type, type);
    }
    EXPECT_FALSE(one->next_for(20ms));
  }
}

TEST_F(RpcLeader, a_watch_that_a_leader_defers_is_retried_and_the_others_continue) {
  auto ann = connect();
  auto bob = connect();
  auto watch = ann.watch("a").value();
  cluster.leader().fail_reads(2);

  auto other = ann.watch("b");
  ASSERT_TRUE(other) << to_string(other.error());
  ASSERT_TRUE(bob.mutex("a").lock());
  ASSERT_TRUE(bob.mutex("b").lock());

  for (auto* one : {&watch, &*other}) {
    const auto event = one->next_for(test_timeout);
    ASSERT_TRUE(event) << to_string(event.error());
    EXPECT_EQ(event->type, LockEventType::granted);
  }
}

TEST_F(RpcLeader, a_read_after_a_leader_change_sees_acknowledged_writes) {
  auto ann = connect();
  auto bob = connect();
  for (std::size_t round = 1; round <= 6; ++round) {
    auto guard = ann.mutex("a").lock().value();
    cluster.move(round % 3);

    const auto holders = bob.holders("a");

    ASSERT_TRUE(holders) << to_string(holders.error());
    ASSERT_EQ(holders->size(), 1U);
    EXPECT_EQ(holders->front().token, guard.token());
    EXPECT_TRUE(guard.unlock());
  }
}

// One that never asks for anything is led to each leader as quickly as one that does.
TEST_F(RpcLeader, an_idle_client_follows_many_leader_changes) {
  auto ann = connect();
  for (std::size_t round = 1; round <= 12; ++round) {
    cluster.move(round % 3);
    ASSERT_TRUE(eventually([&] {
      std::size_t streams = 0;
      cluster.leader().look(
          [&](const server::View&) { streams = cluster.rpc(round % 3).context().streams; });
      return streams > 0;
    }));
  }
  const auto began = std::chrono::steady_clock::now();

  EXPECT_TRUE(ann.mutex("a").lock());

  EXPECT_LT(std::chrono::steady_clock::now() - began, 10s);
}

// The others name it until they have elected another; that must not send us in circles.
TEST_F(RpcLeader, a_redirect_to_a_dead_leader_is_ignored) {
  auto ann = connect();
  auto held = ann.mutex("a").lock().value();

  cluster.stop(0);
  auto asked = std::async(std::launch::async, [&] { return ann.mutex("b").lock(); });
  EXPECT_EQ(asked.wait_for(100ms), std::future_status::timeout);
  cluster.elect(2);

  EXPECT_TRUE(asked.get());
  EXPECT_TRUE(held.extend());
}

// The connection stays open without replies, as when the process is stopped by SIGSTOP.
TEST_F(RpcLeader, a_hanging_leader_is_replaced_well_before_leases_expire) {
  auto ann = connect();
  auto held = ann.mutex("a", {.ttl = 6s}).lock().value();
  std::promise<void> go_on;
  boost::asio::post(cluster.store(0).loop(),
                    [until = go_on.get_future().share()] { until.wait_for(test_timeout); });
  cluster.store(1).lead(true);
  cluster.store(2).follow(RpcCluster::id(1), cluster.address(1));
  const auto began = std::chrono::steady_clock::now();

  const bool is_renewed = held.extend().has_value();

  const auto took = std::chrono::steady_clock::now() - began;
  go_on.set_value();
  EXPECT_TRUE(is_renewed);
  EXPECT_LT(took, 4s);
}

// A wait that is cancelled without a leader leaves the queue at the next leader.
TEST_F(RpcLeader, a_new_leader_receives_pending_cancellations) {
  auto ann = connect();
  auto bob = connect();
  auto held = ann.mutex("a").lock().value();
  std::stop_source hurry;
  auto waiting =
      std::async(std::launch::async, [&] { return bob.mutex("a").lock(hurry.get_token()); });
  ASSERT_TRUE(eventually([&] { return waiters(0) == 1; }));
  cluster.depose();

  hurry.request_stop();
  EXPECT_EQ(waiting.get().error(), Errc::cancelled);
  cluster.elect(1);

  EXPECT_TRUE(eventually([&] { return waiters(1) == 0; }));
  EXPECT_TRUE(held.unlock());
}

// The leader that received the cancellation is lost before its reply: the caller does not wait for
// the next leader.
TEST_F(RpcLeader, a_cancellation_returns_although_the_leader_is_lost) {
  auto ann = connect();
  auto bob = connect();
  auto held = ann.mutex("a").lock().value();
  std::stop_source hurry;
  auto waiting =
      std::async(std::launch::async, [&] { return bob.mutex("a").lock(hurry.get_token()); });
  ASSERT_TRUE(eventually([&] { return waiters(0) == 1; }));
  cluster.leader().pause();
  hurry.request_stop();
  ASSERT_TRUE(eventually([&] { return cluster.leader().kept() == 1; }));

  cluster.depose();
  EXPECT_EQ(waiting.get().error(), Errc::cancelled);
  cluster.elect(1);

  EXPECT_TRUE(eventually([&] { return waiters(1) == 0; }));
  EXPECT_TRUE(held.unlock());
}

// No storm: several clients, many changes, every lock is exclusive and every request is answered.
TEST_F(RpcLeader, repeated_leader_changes_under_load_complete_each_request_once) {
  constexpr int clients = 4;
  constexpr int rounds = 50;
  std::atomic<int> inside = 0;
  std::atomic<int> done = 0;
  std::vector<std::jthread> workers;
  for (int worker = 0; worker < clients; ++worker) {
    workers.emplace_back([&] {
      auto client = connect();
      for (int round = 0; round < rounds; ++round) {
        auto guard = client.mutex("a").lock();
        ASSERT_TRUE(guard) << to_string(guard.error());
        EXPECT_EQ(inside.fetch_add(1), 0);
        inside.fetch_sub(1);
        EXPECT_TRUE(guard->unlock());
        ++done;
      }
    });
  }
  for (std::size_t next = 1; done < clients * rounds && !HasFailure(); ++next) {
    cluster.move(next % 3);
    const auto before = done.load();
    EXPECT_TRUE(eventually([&] { return done > before || done == clients * rounds; }));
  }
  workers.clear();

  EXPECT_EQ(done, clients * rounds);
  EXPECT_EQ(waiters(0), 0U);
}

}  // namespace
}  // namespace tenure::test
