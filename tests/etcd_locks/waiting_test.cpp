#include <atomic>
#include <chrono>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <signal.h>

#include <tenure/client/client.hpp>

#include "support/etcd/server.hpp"
#include "support/wait_until.hpp"

namespace tenure::test {
namespace {

using namespace std::chrono_literals;

class EtcdWaiting : public ::testing::Test {
 protected:
  [[nodiscard]] bool soon(const std::string& name, int count) const {
    return eventually([&] { return server.keys(root + name + "/").kvs_size() == count; });
  }
  /// Number of transactions that etcd has started: the counter is exact when a transaction's effect
  /// is visible, while completions are counted after the reply.
  [[nodiscard]] std::int64_t transactions() const {
    return server.count_of("grpc_server_started_total{grpc_method=\"Txn\"");
  }
  [[nodiscard]] Client client(const std::string& owner) const {
    return connect(server.url("/" + root), {.owner = owner}).value();
  }

  EtcdServer& server = shared_etcd();
  std::string root =
      std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()) + "/";
  Client ann = client("ann");
  Client bob = client("bob");
};

// 002.050: each waiter watches only its predecessor, by etcd's own metrics.
TEST_F(EtcdWaiting, a_hundred_waiters_cost_one_wake_up_for_each_release) {
  constexpr int waits = 100;
  std::vector<Client> clients;
  for (int n = 0; n < 10; ++n) {
    clients.push_back(client("c" + std::to_string(n)));
  }
  auto guard = ann.mutex("a").lock().value();
  const auto watchers = server.count_of("etcd_debugging_mvcc_watcher_total");
  std::atomic<int> entered = 0;
  std::vector<std::jthread> threads;
  for (int n = 0; n < waits; ++n) {
    // Never two of one client in a row: a client needs no event for its own.
    threads.emplace_back([&, n] {
      auto mine = clients[static_cast<std::size_t>(n % 10)].mutex("a").lock().value();
      ++entered;
      EXPECT_TRUE(mine.unlock());
    });
    ASSERT_TRUE(soon("a", n + 2));
    // A waiter whose predecessor left before its watch began needs no event.
    ASSERT_TRUE(eventually(
        [&] { return server.count_of("etcd_debugging_mvcc_watcher_total") >= watchers + n + 1; }));
  }
  const auto events = server.count_of("etcd_debugging_mvcc_events_total");
  const auto asked = transactions();

  EXPECT_TRUE(guard.unlock());
  threads.clear();

  EXPECT_EQ(entered, waits);
  const auto woken = server.count_of("etcd_debugging_mvcc_events_total") - events;
  const auto requests = transactions() - asked;
  // A key that is old enough is watched by its owner, too, who may hear of his own release.
  EXPECT_GE(woken, waits);
  EXPECT_LE(woken, 2 * waits + 2);
  // One release and one look for each.
  EXPECT_LE(requests, 2 * waits + 10);
}

// 002.048: waiters of one client need no watch: the transaction that deletes one key lists the next
// entry.
TEST_F(EtcdWaiting, a_release_grants_the_next_waiter_of_the_same_client) {
  constexpr int waits = 50;
  auto guard = ann.mutex("a").lock().value();
  std::atomic<int> entered = 0;
  std::vector<std::jthread> threads;
  for (int n = 0; n < waits; ++n) {
    threads.emplace_back([&] {
      auto mine = ann.mutex("a").lock().value();
      ++entered;
      EXPECT_TRUE(mine.unlock());
    });
  }
  ASSERT_TRUE(soon("a", waits + 1));
  const auto asked = transactions();

  EXPECT_TRUE(guard.unlock());
  threads.clear();

  EXPECT_EQ(entered, waits);
  const auto requests = transactions() - asked;
  EXPECT_LE(requests, waits + 10);
}

// 002.051: no key is left by a wait that ended, in whatever way.
TEST_F(EtcdWaiting, a_cancelled_or_timed_out_wait_leaves_no_key) {
  auto guard = ann.mutex("a").lock().value();
  std::stop_source hurry;
  std::vector<std::jthread> threads;
  for (int n = 0; n < 5; ++n) {
    threads.emplace_back([&] {
      EXPECT_EQ(bob.mutex("a").lock(hurry.get_token()).error(), Errc::cancelled);
      EXPECT_EQ(bob.mutex("a").try_lock_for(5ms).error(), Errc::timed_out);
      EXPECT_EQ(bob.rw_lock("a").try_lock_shared_for(1ms).error(), Errc::timed_out);
      EXPECT_EQ(bob.mutex("a").try_lock().error(), Errc::would_block);
    });
  }
  ASSERT_TRUE(soon("a", 6));

  hurry.request_stop();
  threads.clear();

  EXPECT_TRUE(soon("a", 1));
  EXPECT_TRUE(guard.unlock());
  EXPECT_TRUE(soon("a", 0));
}

// 002.049, 002-B3, etcd #19597: a wait whose place is gone must not wait for ever.
TEST_F(EtcdWaiting, a_wait_whose_key_was_removed_queues_again) {
  auto guard = ann.mutex("a").lock().value();
  std::jthread waiter([&] { EXPECT_TRUE(bob.mutex("a").lock()); });
  ASSERT_TRUE(soon("a", 2));
  const auto key = server.keys(root + "a/").kvs(1).key();

  server.remove(key);

  EXPECT_TRUE(eventually([&] {
    const auto keys = server.keys(root + "a/");
    return keys.kvs_size() == 2 && keys.kvs(1).key() != key;
  }));
  EXPECT_TRUE(guard.unlock());
}

// 002-B3: a loss is reported when it happens, not at the next use.
TEST_F(EtcdWaiting, the_end_of_a_lease_is_reported_at_once) {
  const auto lease = ann.lease({.ttl = 60s}).value();
  auto one = ann.mutex("a", {.lease = lease}).lock().value();
  auto two = ann.mutex("b", {.lease = lease}).lock().value();
  const auto id = server.keys(root + "a/").kvs(0).lease();

  server.revoke(id);

  EXPECT_TRUE(eventually([&] { return one.lost().stop_requested(); }));
  EXPECT_TRUE(eventually([&] { return two.lost().stop_requested() && !lease.is_alive(); }));
  EXPECT_EQ(one.unlock().error(), Errc::lease_lost);
  EXPECT_TRUE(bob.mutex("a").try_lock());
}

// 002-B5: what is deleted is the key that was made, and not whatever has its name by now; nor
// anything else of the same client.
TEST_F(EtcdWaiting, a_release_removes_only_its_own_key) {
  auto mine = ann.mutex("a").lock().value();
  auto other = ann.mutex("b").lock().value();
  const auto key = server.keys(root + "a/").kvs(0);
  EXPECT_NE(key.lease(), server.keys(root + "b/").kvs(0).lease());
  server.remove(key.key());
  server.put(key.key(), "foreign value");

  EXPECT_FALSE(mine.unlock());

  EXPECT_EQ(server.keys(root + "a/").kvs(0).value(), "foreign value");
  EXPECT_EQ(server.keys(root + "b/").kvs_size(), 1);
  EXPECT_TRUE(other.unlock());
  server.remove(key.key());
}

// Those of a semaphore come free in any order, and the first in line hears of each.
TEST_F(EtcdWaiting, a_released_permit_goes_to_the_first_waiter) {
  const SemaphoreSize two{.capacity = 2};
  auto first = ann.semaphore("pool", two).acquire().value();
  auto second = ann.semaphore("pool", two).acquire().value();
  std::vector<int> order;  // Guarded by the semaphore: each takes all of it.
  std::vector<std::jthread> threads;
  for (int n = 0; n < 4; ++n) {
    threads.emplace_back([&, n] {
      auto mine = (n % 2 == 0 ? ann : bob)
                      .semaphore("pool", {.capacity = 2, .taken_at_once = 2})
                      .acquire()
                      .value();
      order.push_back(n);
      EXPECT_TRUE(mine.unlock());  // a destructor would not wait for the key to be gone
    });
    ASSERT_TRUE(soon("pool", n + 3));
  }

  EXPECT_TRUE(first.unlock());
  EXPECT_TRUE(second.unlock());
  threads.clear();

  EXPECT_EQ(order, (std::vector{0, 1, 2, 3}));
  EXPECT_TRUE(soon("pool", 0));
}

TEST_F(EtcdWaiting, a_semaphore_admits_as_many_as_its_capacity) {
  const SemaphoreSize three{.capacity = 3};
  std::atomic<int> inside = 0;
  std::atomic<int> most = 0;
  std::vector<std::jthread> threads;
  for (int n = 0; n < 12; ++n) {
    threads.emplace_back([&, n] {
      for (int round = 0; round < 10; ++round) {
        auto mine = (n % 2 == 0 ? ann : bob).semaphore("pool", three).acquire().value();
        const auto now = ++inside;
        most = std::max(most.load(), now);
        --inside;
      }
    });
  }
  threads.clear();

  EXPECT_LE(most, 3);
  EXPECT_TRUE(soon("pool", 0));
}

// Readers wait for one writer; one list admits all of them.
TEST_F(EtcdWaiting, many_readers_are_admitted_by_one_list) {
  // As many as are in one list: more would have to look a second time when they come.
  constexpr int readers = 30;
  auto guard = ann.rw_lock("a").lock().value();
  std::atomic<int> entered = 0;
  std::atomic<bool> may_go = false;
  std::vector<std::jthread> threads;
  for (int n = 0; n < readers; ++n) {
    threads.emplace_back([&] {
      auto share = bob.rw_lock("a").lock_shared().value();
      ++entered;
      EXPECT_TRUE(eventually([&] { return may_go.load(); }));
    });
  }
  ASSERT_TRUE(soon("a", readers + 1));
  const auto asked = transactions();

  EXPECT_TRUE(guard.unlock());

  EXPECT_TRUE(eventually([&] { return entered == readers; }));
  const auto requests = transactions() - asked;
  // One release, one list; the client may still be at its last joins.
  EXPECT_LE(requests, 10);
  may_go = true;
}

}  // namespace
}  // namespace tenure::test
