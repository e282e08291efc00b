#include <chrono>
#include <future>
#include <mutex>
#include <optional>
#include <stop_token>
#include <vector>

#include <gtest/gtest.h>

#include <tenure/lock_manager/lock_manager.hpp>

#include "support/lock_manager/locks.hpp"

namespace tenure::test {
namespace {

// 004.006, 004-B1: the document's callers spin.
TEST(Blocking, a_parked_writer_is_handed_the_lock) {
  const LockManager locks;
  locks.try_acquire(t1, row_a, exclusive).value();
  auto waiter = acquire_in_background(locks, t2, row_a, exclusive);
  ASSERT_TRUE(eventually_waiting(locks, 1));

  locks.release(t1, row_a).value();

  EXPECT_EQ(locks.mode_held(t2, row_a), exclusive) << "handed over inside the release";
  EXPECT_TRUE(succeeded(waiter.get()));
  EXPECT_EQ(locks.waiting_count(), 0U);
}

TEST(Blocking, a_free_lock_is_acquired_without_waiting) {
  const LockManager locks;

  EXPECT_TRUE(succeeded(locks.acquire(t1, row_a, exclusive)));
  EXPECT_TRUE(succeeded(locks.acquire(t1, "name", exclusive)));
  EXPECT_TRUE(succeeded(locks.acquire(t1, keys(space_a, 1, 2), exclusive)));
}

// 004-B1
TEST(Blocking, parked_writers_are_granted_in_arrival_order) {
  const LockManager locks;
  const std::vector order{t4, t2, t5, t3};
  std::mutex mutex;
  std::vector<TxnId> served;
  std::vector<std::future<void>> threads;
  locks.try_acquire(t1, row_a, exclusive).value();
  for (const TxnId txn : order) {
    threads.push_back(in_background([&, txn] {
      locks.acquire(txn, row_a, exclusive, with_test_timeout()).value();
      {
        const std::lock_guard lock(mutex);
        served.push_back(txn);
      }
      locks.release(txn, row_a).value();
    }));
    ASSERT_TRUE(eventually_waiting(locks, threads.size()));
  }

  locks.release(t1, row_a).value();
  for (auto& thread : threads) {
    thread.get();
  }

  EXPECT_EQ(served, order);
}

// 004-B1
TEST(Blocking, adjacent_parked_readers_are_granted_together) {
  const LockManager locks;
  locks.try_acquire(t1, row_a, exclusive).value();
  auto one = acquire_in_background(locks, t2, row_a, shared);
  ASSERT_TRUE(eventually_waiting(locks, 1));
  auto two = acquire_in_background(locks, t3, row_a, shared);
  ASSERT_TRUE(eventually_waiting(locks, 2));

  locks.release(t1, row_a).value();

  EXPECT_TRUE(succeeded(one.get()));
  EXPECT_TRUE(succeeded(two.get()));
  EXPECT_EQ(locks.holder_count(row_a), 2U);
}

// 004-B2
TEST(Blocking, a_parked_writer_bars_later_readers) {
  const LockManager locks;
  locks.try_acquire(t1, row_a, shared).value();
  auto writer = acquire_in_background(locks, t2, row_a, exclusive);
  ASSERT_TRUE(eventually_waiting(locks, 1));

  EXPECT_TRUE(refused(locks.try_acquire(t3, row_a, shared), Errc::would_block));
  EXPECT_TRUE(refused(locks.acquire(t3, row_a, shared, within(std::chrono::milliseconds::zero())),
                      Errc::timed_out));

  locks.release(t1, row_a).value();
  EXPECT_TRUE(succeeded(writer.get()));
}

// 004-B2
TEST(Blocking, a_parked_upgrade_goes_before_parked_writers) {
  const LockManager locks;
  locks.try_acquire(t1, row_a, shared).value();
  locks.try_acquire(t2, row_a, shared).value();
  auto writer = acquire_in_background(locks, t3, row_a, exclusive);
  ASSERT_TRUE(eventually_waiting(locks, 1));
  auto upgrade = acquire_in_background(locks, t1, row_a, exclusive);
  ASSERT_TRUE(eventually_waiting(locks, 2));

  locks.release(t2, row_a).value();

  EXPECT_TRUE(succeeded(upgrade.get()));
  EXPECT_EQ(locks.mode_held(t3, row_a), std::nullopt);
  locks.release_all(t1);
  EXPECT_TRUE(succeeded(writer.get()));
}

// Only U may go on to X, so the second updater waits before it reads.
TEST(Blocking, parked_updaters_read_and_write_one_after_the_other) {
  const LockManager locks;
  std::vector<std::future<void>> threads;
  int counter = 0;

  for (const TxnId txn : {t1, t2, t3, t4}) {
    threads.push_back(in_background([&, txn] {
      locks.acquire(txn, row_a, update, with_test_timeout()).value();
      const int seen = counter;
      locks.acquire(txn, row_a, exclusive, with_test_timeout()).value();
      counter = seen + 1;
      locks.release_all(txn);
    }));
  }
  for (auto& thread : threads) {
    thread.get();
  }

  EXPECT_EQ(counter, 4);
  EXPECT_TRUE(locks.recent_deadlocks().empty());
}

// 004-B3
TEST(Blocking, a_parked_range_is_handed_over) {
  const LockManager locks;
  locks.try_acquire(t1, keys(space_a, 1, 10), shared).value();
  auto waiter = acquire_in_background(locks, t2, keys(space_a, 10, 20), exclusive);
  ASSERT_TRUE(eventually_waiting(locks, 1));

  locks.release_range(t1, space_a, KeyRange::of(1, 10).value()).value();

  EXPECT_TRUE(succeeded(waiter.get()));
  EXPECT_EQ(locks.range_count(space_a), 1U);
}

// 004-B14
TEST(Blocking, a_downgrade_wakes_readers) {
  const LockManager locks;
  locks.try_acquire(t1, row_a, exclusive).value();
  auto reader = acquire_in_background(locks, t2, row_a, shared);
  ASSERT_TRUE(eventually_waiting(locks, 1));

  locks.downgrade(t1, row_a, shared).value();

  EXPECT_TRUE(succeeded(reader.get()));
}

// 004.074, 004-B23
TEST(Deadlines, a_past_deadline_times_out_and_leaves_no_trace) {
  const LockManager locks;
  locks.try_acquire(t1, row_a, exclusive).value();
  const WaitOptions past{.deadline = std::chrono::steady_clock::now()};

  EXPECT_TRUE(refused(locks.acquire(t2, row_a, shared, past), Errc::timed_out));

  EXPECT_EQ(locks.waiting_count(), 0U);
  locks.release(t1, row_a).value();
  EXPECT_TRUE(locks.snapshot().locks.empty());
}

// 004.074, 004-B23: parked, not refused at the door.
TEST(Deadlines, a_deadline_that_passes_while_parked_leaves_no_trace) {
  const LockManager locks;
  locks.try_acquire(t1, row_a, exclusive).value();
  locks.try_acquire(t1, keys(space_a, 1, 9), exclusive).value();
  const auto soon = std::chrono::milliseconds(2);

  EXPECT_TRUE(refused(locks.acquire(t2, row_a, exclusive, within(soon)), Errc::timed_out));
  EXPECT_TRUE(
      refused(locks.acquire(t2, keys(space_a, 5, 5), shared, within(soon)), Errc::timed_out));

  EXPECT_EQ(locks.waiting_count(), 0U);
  locks.release_all(t1);
  EXPECT_TRUE(locks.snapshot().locks.empty());
}

// A past deadline is no reason to refuse a free lock.
TEST(Deadlines, a_free_lock_is_acquired_after_its_deadline) {
  const LockManager locks;
  const WaitOptions past{.deadline = std::chrono::steady_clock::time_point::min()};

  EXPECT_TRUE(succeeded(locks.acquire(t1, row_a, exclusive, past)));
}

// A writer that gave up must not bar readers any longer.
TEST(Deadlines, a_writer_that_times_out_unblocks_the_readers_behind_it) {
  const LockManager locks;
  locks.try_acquire(t1, row_a, shared).value();
  auto writer = in_background([&locks] {
    return locks.acquire(t2, row_a, exclusive, within(std::chrono::milliseconds(20)));
  });
  auto reader =
      in_background([&locks] { return locks.acquire(t3, row_a, shared, with_test_timeout()); });

  EXPECT_TRUE(refused(writer.get(), Errc::timed_out));

  EXPECT_TRUE(succeeded(reader.get()));
}

// 004-B13: what was held before the failed upgrade is held after it, once.
TEST(Deadlines, an_upgrade_that_timed_out_keeps_the_weaker_lock) {
  const LockManager locks;
  locks.try_acquire(t1, row_a, shared).value();
  locks.try_acquire(t2, row_a, shared).value();

  EXPECT_TRUE(
      refused(locks.acquire(t1, row_a, exclusive, within(std::chrono::milliseconds::zero())),
              Errc::timed_out));

  EXPECT_EQ(locks.mode_held(t1, row_a), shared);
  locks.release(t1, row_a).value();
  EXPECT_EQ(locks.mode_held(t1, row_a), std::nullopt);
}

// 004-B23
TEST(Cancelling, a_stop_token_cancels_a_parked_wait) {
  const LockManager locks;
  locks.try_acquire(t1, row_a, exclusive).value();
  std::stop_source stop;
  auto waiter = in_background([&locks, token = stop.get_token()] {
    return locks.acquire(t2, row_a, exclusive, {.cancel = token});
  });
  ASSERT_TRUE(eventually_waiting(locks, 1));

  stop.request_stop();

  EXPECT_TRUE(refused(waiter.get(), Errc::cancelled));
  EXPECT_EQ(locks.waiting_count(), 0U);
  locks.release(t1, row_a).value();
  EXPECT_TRUE(locks.snapshot().locks.empty());
}

// 004-B23
TEST(Cancelling, a_token_that_is_stopped_already_never_waits) {
  const LockManager locks;
  locks.try_acquire(t1, row_a, exclusive).value();
  std::stop_source stop;
  stop.request_stop();

  EXPECT_TRUE(
      refused(locks.acquire(t2, row_a, shared, {.cancel = stop.get_token()}), Errc::cancelled));

  EXPECT_EQ(locks.waiting_count(), 0U);
}

// A stop that comes after the grant must not take the lock back.
TEST(Cancelling, a_stop_after_the_grant_changes_nothing) {
  const LockManager locks;
  std::stop_source stop;
  locks.acquire(t1, row_a, exclusive, {.cancel = stop.get_token()}).value();

  stop.request_stop();

  EXPECT_EQ(locks.mode_held(t1, row_a), exclusive);
}

// 004.034
TEST(Cancelling, cancel_wait_of_another_transaction_does_not_affect_a_parked_thread) {
  const LockManager locks;
  locks.try_acquire(t1, row_a, exclusive).value();
  auto waiter = acquire_in_background(locks, t2, row_a, exclusive);
  ASSERT_TRUE(eventually_waiting(locks, 1));

  locks.cancel_wait(t3);
  EXPECT_EQ(locks.waiting_count(), 1U);

  locks.release(t1, row_a).value();
  EXPECT_TRUE(succeeded(waiter.get()));
}

}  // namespace
}  // namespace tenure::test
