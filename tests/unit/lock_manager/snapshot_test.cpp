#include <algorithm>
#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include <tenure/lock_manager/lock_manager.hpp>

#include "support/lock_manager/locks.hpp"

namespace tenure::test {
namespace {

std::optional<LockView> view_of(const LockManager& locks, std::string_view target) {
  for (const LockView& lock : locks.snapshot().locks) {
    if (lock.target == target) {
      return lock;
    }
  }
  return std::nullopt;
}

/// How many lines of the table contain each of `words`.
std::size_t lines_with(const std::string& table, const std::vector<std::string>& words) {
  std::size_t found = 0;
  for (std::size_t start = 0; start < table.size();) {
    const std::size_t end = std::min(table.find('\n', start), table.size());
    const std::string line = table.substr(start, end - start);
    found += std::ranges::all_of(
        words, [&](const std::string& word) { return line.find(word) != std::string::npos; });
    start = end + 1;
  }
  return found;
}

TEST(Snapshots, an_empty_table_has_no_locks) {
  EXPECT_TRUE(LockManager().snapshot().locks.empty());
}

TEST(Snapshots, holders_are_shown_with_mode_and_count) {
  const LockManager locks;
  locks.try_acquire(t1, row_a, shared).value();
  locks.try_acquire(t1, row_a, shared).value();
  locks.try_acquire(t2, row_a, intention_shared).value();

  const auto view = view_of(locks, "resource 101");

  ASSERT_TRUE(view);
  ASSERT_EQ(view->holders.size(), 2U);
  const HolderView& twice = view->holders[0].txn == t1 ? view->holders[0] : view->holders[1];
  EXPECT_EQ(twice.txn, t1);
  EXPECT_EQ(twice.mode, shared);
  EXPECT_EQ(twice.count, 2U);
  EXPECT_GE(twice.transaction_for, std::chrono::milliseconds(0));
  EXPECT_TRUE(view->waiters.empty());
}

TEST(Snapshots, waiters_are_shown_in_the_order_of_the_queue_upgrades_first) {
  const LockManager locks;
  locks.try_acquire(t1, row_a, shared).value();
  locks.try_acquire(t2, row_a, shared).value();
  ASSERT_TRUE(locks.request(t4, row_a, exclusive).is_waiting());
  ASSERT_TRUE(locks.request(t3, row_a, shared).is_waiting());
  ASSERT_TRUE(locks.request(t1, row_a, intention_exclusive).is_waiting());

  const auto view = view_of(locks, "resource 101");

  ASSERT_TRUE(view);
  ASSERT_EQ(view->waiters.size(), 3U);
  EXPECT_EQ(view->waiters[0].txn, t1);
  EXPECT_TRUE(view->waiters[0].upgrade);
  EXPECT_EQ(view->waiters[0].mode, shared_intention_exclusive);
  EXPECT_EQ(view->waiters[1].txn, t4);
  EXPECT_EQ(view->waiters[2].txn, t3);
  EXPECT_FALSE(view->waiters[2].upgrade);
  EXPECT_GE(view->waiters[2].waited, std::chrono::microseconds(0));
}

TEST(Snapshots, all_four_kinds_of_locks_are_shown_by_their_names) {
  const LockManager locks;
  locks.try_acquire(t1, row_a, shared).value();
  locks.try_acquire(t1, "db/users", shared).value();
  locks.try_acquire(t1, keys(space_a, 1, 9), shared).value();
  locks.try_acquire(t1, BytesOf{space_a, BytesRange::half_open("a", "b").value()}, shared).value();

  EXPECT_TRUE(view_of(locks, "resource 101"));
  EXPECT_TRUE(view_of(locks, "\"db/users\""));
  EXPECT_TRUE(view_of(locks, "keys [1, 9] of space 201"));
  EXPECT_TRUE(view_of(locks, "keys [\"a\", \"b\") of space 201"));
  EXPECT_EQ(locks.snapshot().locks.size(), 4U);
}

TEST(Snapshots, a_range_that_is_only_waited_for_is_shown) {
  const LockManager locks;
  locks.try_acquire(t1, keys(space_a, 1, 9), exclusive).value();
  ASSERT_TRUE(locks.request(t2, keys(space_a, 5, 20), shared).is_waiting());

  const auto view = view_of(locks, "keys [5, 20] of space 201");

  ASSERT_TRUE(view);
  EXPECT_TRUE(view->holders.empty());
  ASSERT_EQ(view->waiters.size(), 1U);
  EXPECT_EQ(view->waiters[0].txn, t2);
}

TEST(Snapshots, locks_are_sorted_by_target) {
  const LockManager locks;
  for (const std::string_view name : {"d", "a", "c", "b"}) {
    locks.try_acquire(t1, name, shared).value();
  }
  locks.try_acquire(t1, row_a, shared).value();

  const LockSnapshot seen = locks.snapshot();

  EXPECT_EQ(seen.locks.size(), 5U);
  EXPECT_TRUE(std::ranges::is_sorted(seen.locks, {}, &LockView::target));
}

TEST(Snapshots, the_table_has_a_line_for_each_holder_and_each_waiter) {
  const LockManager locks;
  const TxnId holder{7001};
  const TxnId waiter{8002};
  locks.try_acquire(holder, "db/users", shared).value();
  locks.try_acquire(holder, row_a, shared).value();
  ASSERT_TRUE(locks.request(waiter, "db/users", exclusive).is_waiting());

  const std::string table = to_string(locks.snapshot());

  EXPECT_EQ(lines_with(table, {"7001", "S"}), 2U) << table;
  EXPECT_EQ(lines_with(table, {"8002", "X"}), 1U) << table;
  EXPECT_NE(table.find("db/users"), std::string::npos) << table;
  EXPECT_NE(table.find("resource 101"), std::string::npos) << table;
}

}  // namespace
}  // namespace tenure::test
