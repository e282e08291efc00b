#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <tenure/client/client.hpp>

#include "support/coroutine.hpp"
#include "support/zookeeper/client.hpp"

namespace tenure::test {
namespace {

using namespace std::chrono_literals;

using ZookeeperWaiting = ZookeeperTest;

Detached take_turn(Mutex mutex, std::shared_ptr<std::atomic<int>> turns) {
  auto guard = co_await mutex.lock_async();
  if (guard) {
    (void)co_await guard->unlock_async();
    ++*turns;
  }
}

// 002.040, 002.042, 002.044: 100 processes wait, and each release wakes the next one alone. So that
// each is a process of its own, each has a session of its own.
TEST_F(ZookeeperWaiting, a_hundred_waiters_cost_one_wake_up_for_each_release) {
  constexpr int waits = 100;
  auto guard = std::make_optional(connect().mutex("a").lock().value());
  std::vector<SeenClient> waiters;
  const auto turns = std::make_shared<std::atomic<int>>(0);
  for (int n = 0; n < waits; ++n) {
    waiters.push_back(seen_client(servers.url(chroot)));
    take_turn(waiters.back().client.mutex("a"), turns);
    ASSERT_TRUE(has_nodes("a", static_cast<std::size_t>(n) + 2));
  }
  // By now each watches the one before it, and its own node.
  const auto watched = [&] {
    const auto all = servers.ask("wchs");
    return all.find("Total watches:" + std::to_string(2 * waits + 1)) != std::string::npos;
  };
  EXPECT_TRUE(eventually(watched)) << servers.ask("wchs");

  EXPECT_TRUE(guard->unlock());
  EXPECT_TRUE(eventually([&] { return *turns == waits; }));

  std::uint64_t events = 0;
  for (const auto& one : waiters) {
    // Its predecessor's end, and its own.
    EXPECT_LE(one.events(), 2U);
    events += one.events();
  }
  EXPECT_LE(events, 2U * waits);
  EXPECT_GE(events, waits);
}

// Within one process a release wakes the next waiter without a watch event.
TEST_F(ZookeeperWaiting, waiters_of_one_process_cost_two_requests_each) {
  constexpr int waits = 100;
  const auto seen = seen_client(servers.url(chroot));
  auto guard = seen.client.mutex("a").lock().value();
  const auto before = seen.requests();
  const auto turns = std::make_shared<std::atomic<int>>(0);
  for (int n = 0; n < waits; ++n) {
    take_turn(seen.client.mutex("a"), turns);
  }
  ASSERT_TRUE(has_nodes("a", waits + 1));

  EXPECT_TRUE(guard.unlock());
  EXPECT_TRUE(eventually([&] { return *turns == waits; }));

  // Made and deleted; and those that waited for longer than a moment look after their own node.
  EXPECT_LE(seen.requests() - before, 3U * waits + 10);
}

// An uncontended cycle: create and delete. The textbook recipe needs three requests.
TEST_F(ZookeeperWaiting, an_uncontended_cycle_costs_two_requests) {
  constexpr int cycles = 100;
  // The server would delete a container node whenever it is empty, here five times per second.
  shell.make(path_of("a"));
  const auto seen = seen_client(servers.url(chroot));
  for (int warm = 0; warm < 3; ++warm) {
    EXPECT_TRUE(seen.client.mutex("a").lock());
    ASSERT_TRUE(has_nodes("a", 0));
  }
  const auto before = seen.requests();

  for (int n = 0; n < cycles; ++n) {
    auto guard = seen.client.mutex("a").lock().value();
    EXPECT_TRUE(guard.unlock());
  }

  // The rest are pings of the session.
  EXPECT_LE(seen.requests() - before, 2U * cycles + 10);
}

// 002-B10, 002-B7: nothing stays, however a wait ends.
TEST_F(ZookeeperWaiting, waits_that_end_leave_no_node) {
  const auto ann = connect();
  const auto bob = connect();
  auto guard = ann.mutex("a").lock().value();
  for (int n = 0; n < 20; ++n) {
    EXPECT_EQ(bob.mutex("a").try_lock().error(), Errc::would_block);
    EXPECT_EQ(bob.mutex("a").try_lock_for(1ms).error(), Errc::timed_out);
    std::stop_source hurry;
    std::jthread waiter(
        [&] { EXPECT_EQ(bob.mutex("a").lock(hurry.get_token()).error(), Errc::cancelled); });
    hurry.request_stop();
  }

  EXPECT_TRUE(has_nodes("a", 1));
  EXPECT_TRUE(guard.unlock());
  EXPECT_TRUE(has_nodes("a", 0));
}

// A wait of a semaphore has up to three nodes.
TEST_F(ZookeeperWaiting, waits_for_permits_that_end_leave_no_node) {
  const auto ann = connect();
  const auto bob = connect();
  auto all = ann.semaphore("pool", {.capacity = 2, .taken_at_once = 2}).acquire().value();
  const auto pool = bob.semaphore("pool", {.capacity = 2});
  for (int n = 0; n < 10; ++n) {
    EXPECT_EQ(pool.try_acquire().error(), Errc::would_block);
    EXPECT_EQ(pool.try_acquire_for(1ms).error(), Errc::timed_out);
  }

  EXPECT_TRUE(has_nodes("pool/locks", 0));
  EXPECT_TRUE(has_nodes("pool/leases", 2));
  EXPECT_TRUE(all.unlock());
  EXPECT_TRUE(has_nodes("pool/leases", 0));
}

// 002.041: the one before was not the holder, and left; the holder is still there.
TEST_F(ZookeeperWaiting, a_waiter_keeps_waiting_when_its_predecessor_leaves) {
  const auto ann = connect();
  const auto bob = connect();
  const auto cid = connect();
  auto guard = ann.mutex("a").lock().value();
  std::stop_source hurry;
  std::jthread leaves(
      [&] { EXPECT_EQ(bob.mutex("a").lock(hurry.get_token()).error(), Errc::cancelled); });
  ASSERT_TRUE(has_nodes("a", 2));
  std::atomic<bool> is_in = false;
  std::jthread stays([&] {
    const auto mine = cid.mutex("a").lock();
    is_in = mine.has_value();
  });
  ASSERT_TRUE(has_nodes("a", 3));

  hurry.request_stop();
  leaves.join();
  ASSERT_TRUE(has_nodes("a", 2));
  EXPECT_FALSE(is_in);
  EXPECT_TRUE(guard.unlock());
  stays.join();

  EXPECT_TRUE(is_in);
}

// As 002-B3: a client that has lost its queue position does not wait for ever.
TEST_F(ZookeeperWaiting, a_wait_ends_when_another_client_deletes_its_node) {
  const auto ann = connect();
  const auto bob = connect();
  const auto guard = ann.mutex("a").lock().value();
  const auto first = nodes("a").front();
  std::optional<Errc> end;
  std::jthread waiter(
      [&] { end = bob.mutex("a", {.lease = bob.lease().value()}).lock().error().code; });
  ASSERT_TRUE(has_nodes("a", 2));
  for (const auto& node : nodes("a")) {
    if (node != first) {
      EXPECT_TRUE(shell.remove(path_of("a") + '/' + node));
    }
  }
  waiter.join();

  EXPECT_EQ(end, Errc::lease_lost);
  EXPECT_TRUE(guard.owns_lock());
}

}  // namespace
}  // namespace tenure::test
