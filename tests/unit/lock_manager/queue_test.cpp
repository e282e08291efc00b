#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include <tenure/lock_manager/lock_manager.hpp>

#include "support/lock_manager/locks.hpp"

namespace tenure::test {
namespace {

// 004-B2: the document let readers pass a waiting writer for ever.
TEST(Queues, a_waiting_writer_bars_later_readers) {
  const LockManager locks;
  locks.try_acquire(t1, row_a, shared).value();
  ASSERT_TRUE(locks.request(t2, row_a, exclusive).is_waiting());

  EXPECT_TRUE(locks.request(t3, row_a, shared).is_waiting());
  locks.release(t1, row_a).value();

  EXPECT_EQ(locks.mode_held(t2, row_a), exclusive);
  EXPECT_EQ(locks.mode_held(t3, row_a), std::nullopt);
}

// 004-B2: also not by the back door.
TEST(Queues, a_waiting_writer_bars_later_readers_that_only_try) {
  const LockManager locks;
  locks.try_acquire(t1, row_a, shared).value();
  ASSERT_TRUE(locks.request(t2, row_a, exclusive).is_waiting());

  EXPECT_TRUE(refused(locks.try_acquire(t3, row_a, shared), Errc::would_block));
}

// 004-B1
TEST(Queues, writers_are_granted_in_arrival_order) {
  const LockManager locks;
  const std::vector order{t4, t2, t5, t3};
  locks.try_acquire(t1, row_a, exclusive).value();
  for (const TxnId txn : order) {
    ASSERT_TRUE(locks.request(txn, row_a, exclusive).is_waiting());
  }

  TxnId holder = t1;
  for (const TxnId next : order) {
    locks.release(holder, row_a).value();
    ASSERT_EQ(locks.mode_held(next, row_a), exclusive);
    holder = next;
  }
}

// 004-B1
TEST(Queues, adjacent_readers_are_granted_together) {
  const LockManager locks;
  locks.try_acquire(t1, row_a, exclusive).value();
  ASSERT_TRUE(locks.request(t2, row_a, shared).is_waiting());
  ASSERT_TRUE(locks.request(t3, row_a, shared).is_waiting());
  ASSERT_TRUE(locks.request(t4, row_a, exclusive).is_waiting());
  ASSERT_TRUE(locks.request(t5, row_a, shared).is_waiting());

  locks.release(t1, row_a).value();

  EXPECT_EQ(locks.holder_count(row_a), 2U);
  EXPECT_EQ(locks.mode_held(t2, row_a), shared);
  EXPECT_EQ(locks.mode_held(t3, row_a), shared);
  EXPECT_EQ(locks.waiting_count(), 2U);
}

// A waiter that conflicts with no earlier waiter does not wait for earlier conflicts.
TEST(Queues, a_release_grants_waiters_compatible_with_holders_and_earlier_waiters) {
  const LockManager locks;
  locks.try_acquire(t1, row_a, exclusive).value();
  ASSERT_TRUE(locks.request(t2, row_a, intention_exclusive).is_waiting());
  ASSERT_TRUE(locks.request(t3, row_a, shared).is_waiting());
  ASSERT_TRUE(locks.request(t4, row_a, intention_shared).is_waiting());
  ASSERT_TRUE(locks.request(t5, row_a, intention_exclusive).is_waiting());

  locks.release(t1, row_a).value();

  EXPECT_EQ(locks.mode_held(t2, row_a), intention_exclusive);
  EXPECT_EQ(locks.mode_held(t3, row_a), std::nullopt);
  EXPECT_EQ(locks.mode_held(t4, row_a), intention_shared);
  EXPECT_EQ(locks.mode_held(t5, row_a), std::nullopt) << "IX would overtake the waiting S";
}

TEST(Queues, a_waiter_does_not_wait_for_compatible_waiters) {
  const LockManager locks;
  locks.try_acquire(t1, row_a, intention_exclusive).value();
  ASSERT_TRUE(locks.request(t2, row_a, shared).is_waiting());

  EXPECT_TRUE(succeeded(locks.try_acquire(t3, row_a, intention_shared)));
  EXPECT_TRUE(refused(locks.try_acquire(t4, row_a, intention_exclusive), Errc::would_block));
}

// 004.015: the barrier holds for newcomers, not for what one has already.
TEST(Queues, a_waiting_writer_does_not_bar_a_holder_of_a_covering_mode) {
  const LockManager locks;
  locks.try_acquire(t1, row_a, shared).value();
  ASSERT_TRUE(locks.request(t2, row_a, exclusive).is_waiting());

  EXPECT_TRUE(succeeded(locks.try_acquire(t1, row_a, shared)));
}

// 004-B1: releasing one of two readers hands nothing over.
TEST(Queues, a_writer_waits_for_the_last_reader) {
  const LockManager locks;
  locks.try_acquire(t1, row_a, shared).value();
  locks.try_acquire(t2, row_a, shared).value();
  ASSERT_TRUE(locks.request(t3, row_a, exclusive).is_waiting());

  locks.release(t1, row_a).value();
  EXPECT_EQ(locks.mode_held(t3, row_a), std::nullopt);
  locks.release(t2, row_a).value();

  EXPECT_EQ(locks.mode_held(t3, row_a), exclusive);
}

// 004-B13
TEST(Queues, a_counted_lock_is_handed_over_by_its_last_release_only) {
  const LockManager locks;
  locks.try_acquire(t1, row_a, exclusive).value();
  locks.try_acquire(t1, row_a, exclusive).value();
  ASSERT_TRUE(locks.request(t2, row_a, shared).is_waiting());

  locks.release(t1, row_a).value();
  EXPECT_EQ(locks.mode_held(t2, row_a), std::nullopt);
  locks.release(t1, row_a).value();

  EXPECT_EQ(locks.mode_held(t2, row_a), shared);
}

// 004-B1
TEST(Queues, release_all_hands_every_lock_over) {
  const LockManager locks;
  locks.try_acquire(t1, row_a, exclusive).value();
  locks.try_acquire(t1, "name", exclusive).value();
  locks.try_acquire_range(t1, space_a, KeyRange::all(), exclusive).value();
  ASSERT_TRUE(locks.request(t2, row_a, shared).is_waiting());
  ASSERT_TRUE(locks.request(t3, "name", shared).is_waiting());
  ASSERT_TRUE(locks.request(t4, keys(space_a, 1, 2), shared).is_waiting());

  EXPECT_EQ(locks.release_all(t1), 3U);

  EXPECT_EQ(locks.mode_held(t2, row_a), shared);
  EXPECT_EQ(locks.mode_held(t3, "name"), shared);
  EXPECT_EQ(locks.mode_held(t4, keys(space_a, 1, 2)), shared);
}

// 004-B1: a granted waiter bars later requests at once, before its thread has run.
TEST(Queues, no_request_overtakes_between_the_release_and_the_claim) {
  const LockManager locks;
  locks.try_acquire(t1, row_a, exclusive).value();
  ASSERT_TRUE(locks.request(t2, row_a, exclusive).is_waiting());

  locks.release(t1, row_a).value();

  EXPECT_TRUE(refused(locks.try_acquire(t3, row_a, shared), Errc::would_block));
  EXPECT_TRUE(refused(locks.try_acquire(t1, row_a, shared), Errc::would_block));
}

// 004-B2: two upgrades that can both be had are not kept waiting for each other.
TEST(Queues, compatible_upgrades_are_granted_together) {
  const LockManager locks;
  locks.try_acquire(t1, row_a, intention_shared).value();
  locks.try_acquire(t2, row_a, intention_shared).value();
  locks.try_acquire(t3, row_a, intention_exclusive).value();
  ASSERT_TRUE(locks.request(t1, row_a, shared).is_waiting());
  ASSERT_TRUE(locks.request(t2, row_a, shared).is_waiting());

  locks.release(t3, row_a).value();

  EXPECT_EQ(locks.mode_held(t1, row_a), shared);
  EXPECT_EQ(locks.mode_held(t2, row_a), shared);
}

// 004-B2: t3 is compatible with every holder, not with t2, which waits before it.
TEST(Queues, the_order_holds_across_ranges_that_overlap_in_part) {
  const LockManager locks;
  locks.try_acquire_range(t1, space_a, KeyRange::of(1, 10).value(), exclusive).value();
  ASSERT_TRUE(locks.request(t2, keys(space_a, 10, 20), exclusive).is_waiting());
  ASSERT_TRUE(locks.request(t3, keys(space_a, 20, 30), exclusive).is_waiting());
  ASSERT_TRUE(locks.request(t4, keys(space_a, 31, 40), exclusive).is_granted());

  locks.release_range(t1, space_a, KeyRange::of(1, 10).value()).value();

  EXPECT_EQ(locks.mode_held(t2, keys(space_a, 10, 20)), exclusive);
  EXPECT_EQ(locks.mode_held(t3, keys(space_a, 20, 30)), std::nullopt);
  locks.release_all(t2);
  EXPECT_EQ(locks.mode_held(t3, keys(space_a, 20, 30)), exclusive);
}

}  // namespace
}  // namespace tenure::test
