#include <optional>

#include <gtest/gtest.h>

#include <tenure/lock_manager/lock_manager.hpp>

#include "support/lock_manager/locks.hpp"

namespace tenure::test {
namespace {

/// t1 reads row A, t2 waits to write it. t3 holds row B.
void queue_a_writer(const LockManager& locks) {
  locks.try_acquire(t3, row_b, exclusive).value();
  locks.try_acquire(t1, row_a, shared).value();
  ASSERT_TRUE(locks.request(t2, row_a, exclusive).is_waiting());
}

// 004-B18: t3 waits for t2 by the order of the queue only. Without that edge the cycle would never
// be found; as a conflict of modes it would cost a victim that is not needed.
TEST(QueueOrder, a_waiter_blocked_only_by_the_queue_is_granted_when_a_cycle_closes) {
  const LockManager locks;
  queue_a_writer(locks);
  ASSERT_TRUE(locks.request(t3, row_a, shared).is_waiting());

  EXPECT_TRUE(locks.request(t1, row_b, shared).is_waiting());

  EXPECT_EQ(locks.mode_held(t3, row_a), shared);
  EXPECT_TRUE(locks.recent_deadlocks().empty());
}

// 004-B18
TEST(QueueOrder, a_request_blocked_only_by_the_queue_is_granted_when_it_closes_a_cycle) {
  const LockManager locks;
  queue_a_writer(locks);
  ASSERT_TRUE(locks.request(t1, row_b, shared).is_waiting());

  EXPECT_TRUE(locks.request(t3, row_a, shared).is_granted());

  EXPECT_TRUE(locks.recent_deadlocks().empty());
  EXPECT_EQ(locks.waiting_count(), 2U);
}

// 004-B1, 004-B18: the same for a parked thread.
TEST(QueueOrder, a_call_blocked_only_by_the_queue_does_not_park_when_it_closes_a_cycle) {
  const LockManager locks;
  queue_a_writer(locks);
  ASSERT_TRUE(locks.request(t1, row_b, shared).is_waiting());

  EXPECT_TRUE(succeeded(locks.acquire(t3, row_a, shared, with_test_timeout())));
}

// 004-B18: one grant out of turn resolves the cycle, and all transactions finish.
TEST(QueueOrder, all_waiters_are_granted_after_a_grant_out_of_turn) {
  const LockManager locks;
  queue_a_writer(locks);
  ASSERT_TRUE(locks.request(t3, row_a, shared).is_waiting());
  ASSERT_TRUE(locks.request(t1, row_b, shared).is_waiting());

  locks.release_all(t3);
  EXPECT_EQ(locks.mode_held(t1, row_b), shared);
  locks.release_all(t1);

  EXPECT_EQ(locks.mode_held(t2, row_a), exclusive);
}

// 004-B18
TEST(QueueOrder, ranges_are_granted_out_of_turn) {
  const LockManager locks;
  locks.try_acquire(t3, row_b, exclusive).value();
  locks.try_acquire(t1, keys(space_a, 1, 10), shared).value();
  ASSERT_TRUE(locks.request(t2, keys(space_a, 5, 20), exclusive).is_waiting());
  ASSERT_TRUE(locks.request(t3, keys(space_a, 15, 30), shared).is_waiting());

  EXPECT_TRUE(locks.request(t1, row_b, shared).is_waiting());

  EXPECT_EQ(locks.mode_held(t3, keys(space_a, 15, 30)), shared);
  EXPECT_TRUE(locks.recent_deadlocks().empty());
}

// 004-B18
TEST(QueueOrder, names_are_granted_out_of_turn) {
  const LockManager locks;
  locks.try_acquire(t3, "b", exclusive).value();
  locks.try_acquire(t1, "a", shared).value();
  ASSERT_TRUE(locks.request(t2, "a", exclusive).is_waiting());
  ASSERT_TRUE(locks.request(t3, "a", shared).is_waiting());

  EXPECT_TRUE(locks.request(t1, "b", shared).is_waiting());

  EXPECT_EQ(locks.mode_held(t3, "a"), shared);
  EXPECT_TRUE(locks.recent_deadlocks().empty());
}

// 004-B18
TEST(QueueOrder, find_deadlock_grants_out_of_turn) {
  const LockManager locks({.detection = Detection::on_demand});
  queue_a_writer(locks);
  ASSERT_TRUE(locks.request(t3, row_a, shared).is_waiting());
  ASSERT_TRUE(locks.request(t1, row_b, shared).is_waiting());
  EXPECT_EQ(locks.mode_held(t3, row_a), std::nullopt);

  EXPECT_EQ(locks.find_deadlock(), std::nullopt);

  EXPECT_EQ(locks.mode_held(t3, row_a), shared);
}

// 004-B18: t3 wants to write, which the reader t1 forbids: no grant out of turn helps, so there is
// a victim.
TEST(QueueOrder, a_cycle_that_no_grant_out_of_turn_resolves_has_a_victim) {
  const LockManager locks;
  queue_a_writer(locks);
  ASSERT_TRUE(locks.request(t3, row_a, exclusive).is_waiting());

  EXPECT_TRUE(gives_way(locks.request(t1, row_b, shared), t3));
}

// 004-B18: without a cycle the order of the queue is kept.
TEST(QueueOrder, no_waiter_is_granted_out_of_turn_without_a_cycle) {
  const LockManager locks;
  queue_a_writer(locks);

  ASSERT_TRUE(locks.request(t3, row_a, shared).is_waiting());

  EXPECT_EQ(locks.find_deadlock(), std::nullopt);
  EXPECT_EQ(locks.mode_held(t3, row_a), std::nullopt);
}

// 004-B18: a try never waits, so it closes no cycle and is not granted out of turn.
TEST(QueueOrder, a_try_is_never_granted_out_of_turn) {
  const LockManager locks;
  queue_a_writer(locks);
  ASSERT_TRUE(locks.request(t1, row_b, shared).is_waiting());

  EXPECT_TRUE(refused(locks.try_acquire(t3, row_a, shared), Errc::would_block));
}

// 004-B18: t2 waits for t1's upgrade, which waits for t2: a grant out of turn needs no victim.
TEST(QueueOrder, an_upgrade_behind_an_upgrade_that_waits_for_it_is_granted) {
  const LockManager locks;
  locks.try_acquire(t1, row_a, shared).value();
  locks.try_acquire(t2, row_a, intention_shared).value();
  ASSERT_TRUE(locks.request(t1, row_a, exclusive).is_waiting());

  EXPECT_TRUE(locks.request(t2, row_a, shared).is_granted());

  EXPECT_TRUE(locks.recent_deadlocks().empty());
  locks.release_all(t2);
  EXPECT_EQ(locks.mode_held(t1, row_a), exclusive);
}

}  // namespace
}  // namespace tenure::test
