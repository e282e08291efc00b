#include <chrono>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>

#include <gtest/gtest.h>

#include <tenure/lock_manager/lock_manager.hpp>

#include "support/lock_manager/locks.hpp"

namespace tenure::test {
namespace {

using namespace std::chrono_literals;

// 004.082: strict two-phase locking by scope.
TEST(Transactions, the_end_of_a_transaction_releases_everything) {
  const LockManager locks;
  {
    const Transaction txn = locks.begin();
    txn.lock(row_a, exclusive).value();
    txn.lock("name", exclusive).value();
    txn.lock(keys(space_a, 1, 10), exclusive).value();
    EXPECT_EQ(txn.lock_count(), 3U);
  }

  EXPECT_TRUE(locks.snapshot().locks.empty());
}

// 004-B1
TEST(Transactions, the_end_of_a_transaction_hands_its_locks_over) {
  const LockManager locks;
  {
    const Transaction txn = locks.begin();
    txn.lock(row_a, exclusive).value();
    ASSERT_TRUE(locks.request(t2, row_a, shared).is_waiting());
  }

  EXPECT_EQ(locks.mode_held(t2, row_a), shared);
}

// 004.001: the manager generates ids only for transactions without one, in a range of their own.
TEST(Transactions, generated_ids_begin_at_two_to_the_63) {
  const LockManager locks;

  const Transaction first = locks.begin();
  const Transaction second = locks.begin();

  EXPECT_GE(first.id().get(), std::uint64_t{1} << 63U);
  EXPECT_LT(first.id(), second.id());
}

TEST(Transactions, a_transaction_has_the_id_of_its_options) {
  const LockManager locks;

  const Transaction txn = locks.begin({.id = t5});
  txn.lock(row_a, shared).value();

  EXPECT_EQ(txn.id(), t5);
  EXPECT_EQ(locks.mode_held(t5, row_a), shared);
}

// The two ways to use the manager may be mixed.
TEST(Transactions, a_lock_acquired_by_id_belongs_to_the_transaction_of_that_id) {
  const LockManager locks;
  {
    const Transaction txn = locks.begin({.id = t5});
    locks.try_acquire(t5, row_a, exclusive).value();
    EXPECT_EQ(txn.mode_held(row_a), exclusive);
    EXPECT_EQ(txn.lock_count(), 1U);
  }

  EXPECT_EQ(locks.holder_count(row_a), 0U);
}

// 004.021
TEST(Transactions, unlock_releases_one_acquisition) {
  const LockManager locks;
  const Transaction txn = locks.begin();
  txn.lock(row_a, exclusive).value();
  txn.lock(row_a, exclusive).value();

  EXPECT_TRUE(succeeded(txn.unlock(row_a)));
  EXPECT_EQ(txn.mode_held(row_a), exclusive);
  EXPECT_TRUE(succeeded(txn.unlock(row_a)));
  EXPECT_EQ(txn.mode_held(row_a), std::nullopt);
  EXPECT_TRUE(refused(txn.unlock(row_a), Errc::not_held));
}

// 004.014
TEST(Transactions, try_lock_does_not_wait) {
  const LockManager locks;
  const Transaction one = locks.begin();
  const Transaction two = locks.begin();
  one.lock(row_a, exclusive).value();

  EXPECT_TRUE(refused(two.try_lock(row_a, shared), Errc::would_block));
  EXPECT_TRUE(succeeded(two.try_lock(row_b, shared)));
}

// 004.074, 004-B23
TEST(Transactions, a_lock_that_times_out_leaves_no_trace) {
  const LockManager locks;
  const Transaction one = locks.begin();
  const Transaction two = locks.begin();
  one.lock(row_a, exclusive).value();

  EXPECT_TRUE(refused(two.try_lock_for(row_a, shared, 1ms), Errc::timed_out));
  EXPECT_TRUE(refused(two.try_lock_until(row_a, shared, std::chrono::steady_clock::now()),
                      Errc::timed_out));

  EXPECT_EQ(locks.waiting_count(), 0U);
  EXPECT_EQ(two.lock_count(), 0U);
}

TEST(Transactions, try_lock_for_and_until_acquire_a_free_lock) {
  const LockManager locks;
  const Transaction txn = locks.begin();

  EXPECT_TRUE(succeeded(txn.try_lock_for(row_a, exclusive, 0ns)));
  EXPECT_TRUE(succeeded(
      txn.try_lock_until(row_b, exclusive, std::chrono::steady_clock::time_point::min())));
}

// 004.022
TEST(Transactions, unlock_all_counts_and_the_transaction_goes_on) {
  const LockManager locks;
  const Transaction txn = locks.begin();
  txn.lock(row_a, exclusive).value();
  txn.lock(row_a, exclusive).value();
  txn.lock(keys(space_a, 1, 2), shared).value();
  txn.lock(keys(space_a, 1, 2), shared).value();

  EXPECT_EQ(txn.unlock_all(), 3U);
  EXPECT_EQ(txn.unlock_all(), 0U);

  EXPECT_EQ(txn.lock_count(), 0U);
  EXPECT_TRUE(succeeded(txn.lock(row_b, exclusive)));
}

// 004-B7
TEST(Transactions, a_victim_gets_deadlock_errors_until_it_restarts) {
  const LockManager locks;
  const Transaction victim = locks.begin({.id = t2});
  ASSERT_TRUE(gives_way(close_cycle(locks), t2));

  EXPECT_TRUE(refused(victim.lock(row_c, shared, with_test_timeout()), Errc::deadlock));
  EXPECT_TRUE(refused(victim.try_lock(row_c, shared), Errc::deadlock));
  EXPECT_EQ(victim.restart(), 1U);

  EXPECT_EQ(victim.deadlock(), std::nullopt);
  EXPECT_TRUE(succeeded(victim.lock(row_c, shared)));
}

// 004-B14
TEST(Transactions, a_transaction_downgrades) {
  const LockManager locks;
  const Transaction txn = locks.begin();
  txn.lock(row_a, exclusive).value();

  EXPECT_TRUE(succeeded(txn.downgrade(row_a, shared)));
  EXPECT_EQ(txn.mode_held(row_a), shared);
  EXPECT_TRUE(refused(txn.downgrade(row_a, exclusive), Errc::invalid_argument));
  EXPECT_TRUE(refused(txn.downgrade(row_b, shared), Errc::not_held));
}

// A lock released twice, or never, would show here.
TEST(Transactions, a_moved_transaction_keeps_its_locks) {
  const LockManager locks;
  std::optional<Transaction> moved;
  {
    Transaction txn = locks.begin();
    txn.lock(row_a, exclusive).value();
    moved.emplace(std::move(txn));
  }

  EXPECT_EQ(moved->mode_held(row_a), exclusive);
  moved.reset();
  EXPECT_EQ(locks.holder_count(row_a), 0U);
}

TEST(Transactions, a_transaction_that_is_assigned_to_releases_its_locks) {
  const LockManager locks;
  Transaction one = locks.begin();
  Transaction two = locks.begin();
  one.lock(row_a, exclusive).value();
  two.lock(row_b, exclusive).value();
  const TxnId id = two.id();

  one = std::move(two);

  EXPECT_EQ(one.id(), id);
  EXPECT_EQ(locks.holder_count(row_a), 0U);
  EXPECT_EQ(locks.holder_count(row_b), 1U);
}

// 004.009: a use after free if the transaction only pointed at the manager.
TEST(Transactions, a_transaction_may_outlive_its_manager) {
  std::optional<LockManager> locks(std::in_place);
  const Transaction txn = locks->begin();
  txn.lock(row_a, exclusive).value();

  locks.reset();

  EXPECT_EQ(txn.mode_held(row_a), exclusive);
  EXPECT_EQ(txn.unlock_all(), 1U);
}

TEST(Transactions, a_transaction_is_moved_and_never_copied) {
  static_assert(!std::is_copy_constructible_v<Transaction>);
  static_assert(!std::is_copy_assignable_v<Transaction>);
  static_assert(std::is_nothrow_move_constructible_v<Transaction>);
  static_assert(std::is_nothrow_move_assignable_v<Transaction>);
  SUCCEED();
}

}  // namespace
}  // namespace tenure::test
