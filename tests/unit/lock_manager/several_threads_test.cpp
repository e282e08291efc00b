#include <atomic>
#include <cstddef>
#include <cstdint>
#include <latch>
#include <optional>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <tenure/lock_manager/lock_manager.hpp>

#include "support/lock_manager/locks.hpp"

namespace tenure::test {
namespace {

// 004.002, 004.004: what one thread waits for does not stop another from anything else.
TEST(Threads, a_parked_thread_blocks_no_thread_on_other_locks) {
  for (const std::size_t shards : {1U, 256U}) {
    const LockManager locks = LockManager::with_shards(shards);
    locks.try_acquire(t1, row_a, exclusive).value();
    auto waiter = acquire_in_background(locks, t2, row_a, exclusive);
    ASSERT_TRUE(eventually_waiting(locks, 1));

    for (std::uint64_t number = 1000; number < 2000; ++number) {
      ASSERT_TRUE(succeeded(locks.try_acquire(t3, ResourceId{number}, exclusive)));
    }

    locks.release(t1, row_a).value();
    EXPECT_TRUE(succeeded(waiter.get()));
  }
}

// 004.002: no outer lock, one table, different rows.
TEST(Threads, threads_on_their_own_rows_never_conflict) {
  const LockManager locks;
  std::latch start(4);
  std::atomic<int> conflicts = 0;
  std::vector<std::jthread> threads;

  for (std::uint64_t thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      start.arrive_and_wait();
      for (std::uint64_t round = 0; round < 2000; ++round) {
        const ResourceId row{thread * 10'000 + round};
        conflicts += locks.try_acquire(TxnId{thread}, row, exclusive).has_value() ? 0 : 1;
        conflicts += locks.release(TxnId{thread}, row).has_value() ? 0 : 1;
      }
    });
  }
  threads.clear();

  EXPECT_EQ(conflicts, 0);
  EXPECT_TRUE(locks.snapshot().locks.empty());
}

// 004.002: a lock that two hold at once would lose an increment.
TEST(Threads, a_writer_is_alone) {
  const LockManager locks;
  std::vector<std::jthread> threads;
  int counter = 0;

  for (std::uint64_t thread = 1; thread <= 4; ++thread) {
    threads.emplace_back([&, thread] {
      for (int round = 0; round < 500; ++round) {
        locks.acquire(TxnId{thread}, row_a, exclusive, with_test_timeout()).value();
        ++counter;
        locks.release(TxnId{thread}, row_a).value();
      }
    });
  }
  threads.clear();

  EXPECT_EQ(counter, 2000);
  EXPECT_EQ(locks.holder_count(row_a), 0U);
}

// 004-B10
TEST(ThreadsOfOneTransaction, two_of_them_wait_for_different_locks_at_once) {
  const LockManager locks;
  locks.try_acquire(t1, row_a, exclusive).value();
  locks.try_acquire(t1, row_b, exclusive).value();
  auto one = acquire_in_background(locks, t2, row_a, exclusive);
  auto two = acquire_in_background(locks, t2, row_b, exclusive);
  ASSERT_TRUE(eventually_waiting(locks, 2));
  EXPECT_EQ(locks.waiting_count(), 1U);

  locks.release(t1, row_b).value();
  EXPECT_TRUE(succeeded(two.get()));
  locks.release(t1, row_a).value();

  EXPECT_TRUE(succeeded(one.get()));
}

// 004-B10, 004-B13: each blocked thread is a wait, and an acquisition, of its own.
TEST(ThreadsOfOneTransaction, two_threads_wait_for_the_same_lock) {
  const LockManager locks;
  locks.try_acquire(t1, row_a, exclusive).value();
  auto one = acquire_in_background(locks, t2, row_a, exclusive);
  auto two = acquire_in_background(locks, t2, row_a, exclusive);
  ASSERT_TRUE(eventually_waiting(locks, 2));

  locks.release(t1, row_a).value();
  EXPECT_TRUE(succeeded(one.get()));
  EXPECT_TRUE(succeeded(two.get()));

  locks.release(t2, row_a).value();
  EXPECT_EQ(locks.mode_held(t2, row_a), exclusive);
  locks.release(t2, row_a).value();
  EXPECT_EQ(locks.holder_count(row_a), 0U);
}

// 004-B11
TEST(ThreadsOfOneTransaction, release_all_ends_the_waits_of_the_others) {
  const LockManager locks;
  const Transaction txn = locks.begin();
  locks.try_acquire(t1, row_a, exclusive).value();
  locks.try_acquire(t1, keys(space_a, 1, 9), exclusive).value();
  txn.lock(row_b, exclusive).value();
  auto point = in_background([&txn] { return txn.lock(row_a, shared, with_test_timeout()); });
  auto range =
      in_background([&] { return txn.lock(keys(space_a, 5, 5), shared, with_test_timeout()); });
  ASSERT_TRUE(eventually_waiting(locks, 2));

  EXPECT_EQ(txn.unlock_all(), 1U);

  EXPECT_TRUE(refused(point.get(), Errc::cancelled));
  EXPECT_TRUE(refused(range.get(), Errc::cancelled));
  EXPECT_EQ(txn.lock_count(), 0U);
}

// 004-B11: after release_all nothing is held that was granted "in between".
TEST(ThreadsOfOneTransaction, release_all_and_a_request_at_once_leave_all_or_nothing) {
  const LockManager locks;
  for (int round = 0; round < 300; ++round) {
    std::latch start(2);
    std::jthread requester([&] {
      start.arrive_and_wait();
      (void)locks.request(t1, row_a, exclusive);
    });
    start.arrive_and_wait();
    const std::size_t released = locks.release_all(t1);
    requester.join();

    EXPECT_EQ(locks.holder_count(row_a), released == 1 ? 0U : 1U);
    locks.release_all(t1);
  }

  EXPECT_TRUE(locks.snapshot().locks.empty());
}

// The S that made it an upgrade is gone; the wish for X stands.
TEST(ThreadsOfOneTransaction, an_upgrade_goes_on_when_another_thread_releases_the_weaker_lock) {
  const LockManager locks;
  locks.try_acquire(t1, row_a, shared).value();
  locks.try_acquire(t2, row_a, shared).value();
  auto upgrade = acquire_in_background(locks, t1, row_a, exclusive);
  ASSERT_TRUE(eventually_waiting(locks, 1));

  locks.release(t1, row_a).value();
  EXPECT_EQ(locks.mode_held(t1, row_a), std::nullopt);
  EXPECT_EQ(locks.waiting_count(), 1U);
  locks.release(t2, row_a).value();

  EXPECT_TRUE(succeeded(upgrade.get()));
  locks.release(t1, row_a).value();
  EXPECT_EQ(locks.holder_count(row_a), 0U);
}

// 004-B2: at its place, so before the writer it stood before.
TEST(ThreadsOfOneTransaction, an_upgrade_that_became_a_plain_request_keeps_its_position) {
  const LockManager locks;
  locks.try_acquire(t1, row_a, shared).value();
  locks.try_acquire(t2, row_a, shared).value();
  ASSERT_TRUE(locks.request(t3, row_a, exclusive).is_waiting());
  ASSERT_TRUE(locks.request(t1, row_a, exclusive).is_waiting());

  locks.release(t1, row_a).value();
  locks.release(t2, row_a).value();

  EXPECT_EQ(locks.mode_held(t1, row_a), exclusive);
  EXPECT_EQ(locks.mode_held(t3, row_a), std::nullopt);
}

// 004.002: a handle is used from any thread.
TEST(ThreadsOfOneTransaction, a_handle_collects_locks_from_many_threads) {
  const LockManager locks;
  const Transaction txn = locks.begin();
  std::vector<std::jthread> threads;

  for (std::uint64_t thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      for (std::uint64_t number = 0; number < 500; ++number) {
        txn.lock(ResourceId{thread * 500 + number}, exclusive).value();
      }
    });
  }
  threads.clear();

  EXPECT_EQ(txn.lock_count(), 2000U);
  EXPECT_EQ(txn.unlock_all(), 2000U);
}

// 004.032, 004.084, 004-B8: whatever the interleaving, one gives way and both get done.
TEST(Threads, two_transactions_that_cross_always_finish) {
  const LockManager locks;
  const auto work = [&locks](TxnId id, ResourceId first, ResourceId second) {
    const Transaction txn = locks.begin({.id = id});
    for (int done = 0; done < 200;) {
      const bool both = txn.lock(first, exclusive, with_test_timeout()).has_value() &&
                        txn.lock(second, exclusive, with_test_timeout()).has_value();
      done += both ? 1 : 0;
      txn.restart();
    }
  };

  auto one = in_background([&] { work(t1, row_a, row_b); });
  auto two = in_background([&] { work(t2, row_b, row_a); });
  one.get();
  two.get();

  EXPECT_TRUE(locks.snapshot().locks.empty());
  for (const DeadlockReport& report : locks.recent_deadlocks()) {
    EXPECT_EQ(report.deadlock.victim, t2);
  }
}

}  // namespace
}  // namespace tenure::test
