#include <chrono>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include <gtest/gtest.h>

#include <tenure/lock_manager/lock_manager.hpp>

#include "support/lock_manager/locks.hpp"

namespace tenure::test {
namespace {

// 004-B13
TEST(ScopedLocks, a_lock_ends_with_its_handle_not_with_its_transaction) {
  const LockManager locks;
  const Transaction txn = locks.begin();
  {
    const auto lock = txn.lock_scoped(row_a, exclusive);
    ASSERT_TRUE(succeeded(lock));
    EXPECT_TRUE(lock->owns_lock());
    EXPECT_EQ(txn.mode_held(row_a), exclusive);
  }

  EXPECT_EQ(txn.mode_held(row_a), std::nullopt);
}

// 004-B13: one acquisition, not the lock.
TEST(ScopedLocks, the_end_of_a_handle_releases_one_acquisition) {
  const LockManager locks;
  const Transaction txn = locks.begin();
  txn.lock(row_a, exclusive).value();
  {
    const auto lock = txn.lock_scoped(row_a, exclusive);
    ASSERT_TRUE(succeeded(lock));
  }

  EXPECT_EQ(txn.mode_held(row_a), exclusive);
  txn.unlock(row_a).value();
  EXPECT_EQ(txn.mode_held(row_a), std::nullopt);
}

TEST(ScopedLocks, a_new_handle_owns_nothing) {
  ScopedLock lock;

  EXPECT_FALSE(lock.owns_lock());
  EXPECT_FALSE(static_cast<bool>(lock));
  EXPECT_TRUE(refused(lock.unlock(), Errc::not_held));
}

TEST(ScopedLocks, an_unlocked_handle_owns_nothing_and_releases_once) {
  const LockManager locks;
  const Transaction txn = locks.begin();
  txn.lock(row_a, shared).value();
  ScopedLock lock = txn.lock_scoped(row_a, shared).value();

  EXPECT_TRUE(succeeded(lock.unlock()));
  EXPECT_FALSE(lock.owns_lock());
  EXPECT_TRUE(refused(lock.unlock(), Errc::not_held));

  EXPECT_EQ(txn.mode_held(row_a), shared) << "the other acquisition is not the handle's";
}

TEST(ScopedLocks, a_handle_reports_that_its_transaction_released_the_lock_before) {
  const LockManager locks;
  const Transaction txn = locks.begin();
  ScopedLock lock = txn.lock_scoped(row_a, shared).value();

  txn.unlock_all();

  EXPECT_TRUE(refused(lock.unlock(), Errc::not_held));
}

TEST(ScopedLocks, a_moved_handle_releases_once) {
  const LockManager locks;
  const Transaction txn = locks.begin();
  txn.lock(row_a, shared).value();
  {
    ScopedLock from = txn.lock_scoped(row_a, shared).value();
    const ScopedLock to = std::move(from);
    EXPECT_TRUE(to.owns_lock());
  }

  EXPECT_EQ(txn.mode_held(row_a), shared);
}

TEST(ScopedLocks, a_handle_that_is_assigned_to_releases_what_it_had) {
  const LockManager locks;
  const Transaction txn = locks.begin();
  ScopedLock lock = txn.lock_scoped(row_a, shared).value();

  lock = txn.lock_scoped(row_b, shared).value();

  EXPECT_EQ(txn.mode_held(row_a), std::nullopt);
  EXPECT_EQ(txn.mode_held(row_b), shared);
}

// A handle that kept a view of the name would release something else by now.
TEST(ScopedLocks, a_handle_keeps_the_name_it_locked) {
  const LockManager locks;
  const Transaction txn = locks.begin();
  std::string name = "a name that is too long for the small string optimisation";
  {
    const auto lock = txn.lock_scoped(name, exclusive);
    ASSERT_TRUE(succeeded(lock));
    name.assign(name.size(), 'x');
  }

  EXPECT_TRUE(locks.snapshot().locks.empty());
}

// 004-B21: release by handle.
TEST(ScopedLocks, a_handle_releases_its_range) {
  const LockManager locks;
  const Transaction txn = locks.begin();
  {
    const auto number = txn.lock_scoped(keys(space_a, 1, 10), exclusive);
    const auto bytes = txn.lock_scoped(BytesOf{space_a, BytesRange::prefix("u")}, exclusive);
    ASSERT_TRUE(succeeded(number) && succeeded(bytes));
    EXPECT_EQ(locks.range_count(space_a), 2U);
  }

  EXPECT_EQ(locks.range_count(space_a), 0U);
}

TEST(ScopedLocks, a_lock_that_cannot_be_had_gives_no_handle) {
  const LockManager locks;
  const Transaction txn = locks.begin();
  locks.try_acquire(t1, row_a, exclusive).value();

  EXPECT_TRUE(refused(txn.lock_scoped(row_a, shared, within(std::chrono::milliseconds::zero())),
                      Errc::timed_out));
  EXPECT_TRUE(refused(txn.lock_scoped("", shared), Errc::invalid_argument));
}

TEST(ScopedLocks, a_handle_is_moved_and_never_copied) {
  static_assert(!std::is_copy_constructible_v<ScopedLock>);
  static_assert(!std::is_copy_assignable_v<ScopedLock>);
  static_assert(std::is_nothrow_move_constructible_v<ScopedLock>);
  static_assert(std::is_nothrow_move_assignable_v<ScopedLock>);
  SUCCEED();
}

}  // namespace
}  // namespace tenure::test
