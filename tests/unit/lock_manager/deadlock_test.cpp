#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include <tenure/lock_manager/lock_manager.hpp>

#include "support/lock_manager/locks.hpp"

namespace tenure::test {
namespace {

// 004.029, 004.032, 004.033, 004.054: the example of the document.
TEST(Deadlocks, the_youngest_transaction_that_closes_a_cycle_is_the_victim) {
  const LockManager locks;
  ASSERT_TRUE(locks.request(t1, row_a, exclusive).is_granted());
  ASSERT_TRUE(locks.request(t2, row_b, exclusive).is_granted());
  ASSERT_TRUE(locks.request(t1, row_b, exclusive).is_waiting());

  const RequestResult answer = locks.request(t2, row_a, exclusive);

  ASSERT_TRUE(gives_way(answer, t2));
  EXPECT_TRUE(is_cycle(answer.deadlock()->cycle, {t1, t2}));
}

// 004.032, 004.033, 004.055
TEST(Deadlocks, the_victim_may_differ_from_the_transaction_that_closes_the_cycle) {
  const LockManager locks;

  const RequestResult answer = close_cycle(locks, t1, t2);

  ASSERT_TRUE(gives_way(answer, t2));
  EXPECT_EQ(locks.waiting_count(), 1U) << "t1 stays in the queue, t2 does not";
}

// 004.029, 004.049: each member waits for the next.
TEST(Deadlocks, a_cycle_of_three_is_found_in_its_order) {
  const LockManager locks;
  locks.try_acquire(t1, row_a, exclusive).value();
  locks.try_acquire(t2, row_b, exclusive).value();
  locks.try_acquire(t3, row_c, exclusive).value();
  ASSERT_TRUE(locks.request(t1, row_b, exclusive).is_waiting());
  ASSERT_TRUE(locks.request(t2, row_c, exclusive).is_waiting());

  const RequestResult answer = locks.request(t3, row_a, exclusive);

  ASSERT_TRUE(gives_way(answer, t3));
  EXPECT_TRUE(is_cycle(answer.deadlock()->cycle, {t1, t2, t3}));
}

// 004.020: why U exists.
TEST(Deadlocks, two_readers_that_both_want_to_write_are_a_cycle) {
  const LockManager locks;
  locks.try_acquire(t1, row_a, shared).value();
  locks.try_acquire(t2, row_a, shared).value();
  ASSERT_TRUE(locks.request(t1, row_a, exclusive).is_waiting());

  EXPECT_TRUE(gives_way(locks.request(t2, row_a, exclusive), t2));

  EXPECT_EQ(locks.mode_held(t2, row_a), shared);
  locks.release_all(t2);
  EXPECT_EQ(locks.mode_held(t1, row_a), exclusive);
}

// 004.043, 004-B3: the document's detector never saw ranges.
TEST(Deadlocks, a_cycle_over_ranges_is_found) {
  const LockManager locks;
  locks.try_acquire_range(t1, space_a, KeyRange::of(1, 10).value(), exclusive).value();
  locks.try_acquire_range(t2, space_a, KeyRange::of(20, 30).value(), exclusive).value();
  ASSERT_TRUE(locks.request(t1, keys(space_a, 25, 40), shared).is_waiting());

  EXPECT_TRUE(gives_way(locks.request(t2, keys(space_a, 10, 11), shared), t2));
}

// 004.043, 004-B3: the waits of all four kinds are one graph.
TEST(Deadlocks, a_cycle_over_points_names_and_both_kinds_of_ranges_is_found) {
  const LockManager locks;
  const BytesOf users{.space = space_a, .range = BytesRange::prefix("user/")};
  locks.try_acquire(t1, row_a, exclusive).value();
  locks.try_acquire(t2, "name", exclusive).value();
  locks.try_acquire(t3, keys(space_a, 1, 9), exclusive).value();
  locks.try_acquire(t4, users, exclusive).value();
  ASSERT_TRUE(locks.request(t1, "name", exclusive).is_waiting());
  ASSERT_TRUE(locks.request(t2, keys(space_a, 5, 5), exclusive).is_waiting());
  ASSERT_TRUE(locks.request(t3, users, shared).is_waiting());

  const RequestResult answer = locks.request(t4, row_a, shared);

  ASSERT_TRUE(gives_way(answer, t4));
  EXPECT_TRUE(is_cycle(answer.deadlock()->cycle, {t1, t2, t3, t4}));
}

// 004.043, 004-B17: locks taken by try_acquire are holders like any other.
TEST(Deadlocks, locks_acquired_by_try_acquire_are_edges) {
  const LockManager locks;
  locks.try_acquire(t1, row_a, exclusive).value();
  ASSERT_TRUE(locks.request(t2, row_b, exclusive).is_granted());
  ASSERT_TRUE(locks.request(t2, row_a, exclusive).is_waiting());

  EXPECT_TRUE(refused(locks.try_acquire(t1, row_b, exclusive), Errc::would_block))
      << "a request that does not wait closes no cycle";
  EXPECT_TRUE(gives_way(locks.request(t1, row_b, exclusive), t2));
}

// 004.050: two readers before a writer are two ways to one end, not a cycle.
TEST(Deadlocks, a_diamond_is_no_deadlock) {
  const LockManager locks;
  locks.try_acquire(t1, row_a, shared).value();
  locks.try_acquire(t2, row_a, shared).value();
  locks.try_acquire(t3, row_b, exclusive).value();
  ASSERT_TRUE(locks.request(t1, row_b, shared).is_waiting());
  ASSERT_TRUE(locks.request(t2, row_b, shared).is_waiting());

  EXPECT_TRUE(locks.request(t4, row_a, exclusive).is_waiting());

  EXPECT_EQ(locks.find_deadlock(), std::nullopt);
}

// 004.042: a stale edge would make t2 a victim here.
TEST(Deadlocks, a_wait_that_ended_is_no_edge) {
  const LockManager locks;
  locks.try_acquire(t1, row_a, exclusive).value();
  locks.try_acquire(t2, row_b, exclusive).value();
  ASSERT_TRUE(locks.request(t1, row_b, exclusive).is_waiting());
  locks.cancel_wait(t1);

  EXPECT_TRUE(locks.request(t2, row_a, exclusive).is_waiting());
}

// 004.042: the lock that t1 waited for is its own by now.
TEST(Deadlocks, a_lock_that_was_released_is_no_edge) {
  const LockManager locks;
  locks.try_acquire(t1, row_a, exclusive).value();
  locks.try_acquire(t2, row_b, exclusive).value();
  ASSERT_TRUE(locks.request(t1, row_b, exclusive).is_waiting());
  locks.release(t2, row_b).value();

  EXPECT_TRUE(locks.request(t2, row_a, exclusive).is_waiting());
}

// 004-B10: the second wait of the document overwrote the first, and the cycle was never found.
TEST(Deadlocks, all_waits_of_a_transaction_are_searched) {
  for (const TxnId closing : {t2, t3}) {
    const LockManager locks;
    locks.try_acquire(t1, row_c, exclusive).value();
    locks.try_acquire(t2, row_a, exclusive).value();
    locks.try_acquire(t3, row_b, exclusive).value();
    ASSERT_TRUE(locks.request(t1, row_a, exclusive).is_waiting());
    ASSERT_TRUE(locks.request(t1, row_b, exclusive).is_waiting());

    const RequestResult answer = locks.request(closing, row_c, exclusive);

    ASSERT_TRUE(gives_way(answer, closing));
    EXPECT_TRUE(is_cycle(answer.deadlock()->cycle, {t1, closing}));
  }
}

// 004-B10
TEST(Deadlocks, all_waits_of_the_victim_end) {
  const LockManager locks({.victim = VictimPolicy::oldest});
  locks.try_acquire(t1, row_c, exclusive).value();
  locks.try_acquire(t2, row_a, exclusive).value();
  locks.try_acquire(t3, row_b, exclusive).value();
  ASSERT_TRUE(locks.request(t1, row_a, exclusive).is_waiting());
  ASSERT_TRUE(locks.request(t1, row_b, exclusive).is_waiting());

  ASSERT_TRUE(gives_way(locks.request(t3, row_c, exclusive), t1));

  EXPECT_EQ(wait_total(locks), 1U) << "only t3 waits";
}

// 004-B8: the document let every member of a cycle name a victim.
TEST(Deadlocks, a_deadlock_has_exactly_one_victim) {
  const LockManager locks;
  ASSERT_TRUE(gives_way(close_cycle(locks), t2));

  EXPECT_TRUE(locks.request(t1, row_b, exclusive).is_waiting());
  EXPECT_EQ(locks.find_deadlock(), std::nullopt);

  EXPECT_EQ(locks.recent_deadlocks().size(), 1U);
}

// 004-B8: one lock closes two cycles; each is resolved, with one victim each.
TEST(Deadlocks, a_request_that_closes_two_cycles_leaves_none) {
  const LockManager locks;
  locks.try_acquire(t1, row_a, exclusive).value();
  locks.try_acquire(t2, row_b, shared).value();
  locks.try_acquire(t3, row_b, shared).value();
  ASSERT_TRUE(locks.request(t2, row_a, exclusive).is_waiting());
  ASSERT_TRUE(locks.request(t3, row_a, exclusive).is_waiting());

  ASSERT_NE(locks.request(t1, row_b, exclusive).deadlock(), nullptr);
  while (locks.find_deadlock()) {
    // Whatever the first search left is found here.
  }
  locks.release_all(t2);
  locks.release_all(t3);

  EXPECT_EQ(locks.mode_held(t1, row_b), exclusive);
}

// 004.035, 004.036
TEST(Deadlocks, detection_on_demand_does_not_search_at_a_wait) {
  const LockManager locks({.detection = Detection::on_demand});
  EXPECT_TRUE(close_cycle(locks).is_waiting());
  EXPECT_EQ(locks.waiting_count(), 2U);

  const auto found = locks.find_deadlock();

  ASSERT_TRUE(found);
  EXPECT_EQ(found->victim, t2);
  EXPECT_TRUE(is_cycle(found->cycle, {t1, t2}));
}

// 004.035, 004-B8
TEST(Deadlocks, a_deadlock_found_on_demand_is_resolved_once) {
  const LockManager locks({.detection = Detection::on_demand});
  ASSERT_TRUE(close_cycle(locks).is_waiting());
  ASSERT_TRUE(locks.find_deadlock());

  EXPECT_EQ(locks.find_deadlock(), std::nullopt);

  EXPECT_EQ(locks.waiting_count(), 1U);
  EXPECT_TRUE(gives_way(locks.request(t2, row_a, exclusive), t2)) << "the victim gets the error";
}

// 004.035
TEST(Deadlocks, waits_without_a_cycle_are_no_deadlock) {
  const LockManager locks;
  EXPECT_EQ(locks.find_deadlock(), std::nullopt);
  locks.try_acquire(t1, row_a, exclusive).value();
  ASSERT_TRUE(locks.request(t2, row_a, exclusive).is_waiting());
  ASSERT_TRUE(locks.request(t3, row_a, exclusive).is_waiting());

  EXPECT_EQ(locks.find_deadlock(), std::nullopt);
}

// 004.035, 004.036: two cycles that have nothing to do with each other.
TEST(Deadlocks, every_call_on_demand_finds_another_deadlock_until_none_is_left) {
  const LockManager locks({.detection = Detection::on_demand});
  for (const std::uint64_t pair : {10U, 20U}) {
    const TxnId older{pair};
    const TxnId younger{pair + 1};
    locks.try_acquire(older, ResourceId{pair}, exclusive).value();
    locks.try_acquire(younger, ResourceId{pair + 1}, exclusive).value();
    ASSERT_TRUE(locks.request(older, ResourceId{pair + 1}, exclusive).is_waiting());
    ASSERT_TRUE(locks.request(younger, ResourceId{pair}, exclusive).is_waiting());
  }

  const auto first = locks.find_deadlock();
  const auto second = locks.find_deadlock();

  ASSERT_TRUE(first && second);
  std::vector victims{first->victim, second->victim};
  std::ranges::sort(victims);
  EXPECT_EQ(victims, (std::vector{TxnId{11}, TxnId{21}}));
  EXPECT_EQ(locks.find_deadlock(), std::nullopt);
}

// 004-B17: t1 waits for row B in one thread and gets more of row A in another; t1 did not
// block t2 before, and does now. No new wait begins, and yet the cycle is closed.
TEST(Deadlocks, a_grant_to_a_transaction_that_waits_elsewhere_may_close_a_cycle) {
  const LockManager locks;
  locks.try_acquire(t1, row_a, intention_shared).value();
  locks.try_acquire(t3, row_a, shared).value();
  locks.try_acquire(t2, row_b, exclusive).value();
  ASSERT_TRUE(locks.request(t2, row_a, intention_exclusive).is_waiting());
  ASSERT_TRUE(locks.request(t1, row_b, exclusive).is_waiting());

  locks.try_acquire(t1, row_a, shared).value();

  locks.release_all(t3);
  (void)locks.find_deadlock();
  ASSERT_EQ(locks.recent_deadlocks().size(), 1U);
  EXPECT_TRUE(is_cycle(locks.recent_deadlocks()[0].deadlock.cycle, {t1, t2}));
}

}  // namespace
}  // namespace tenure::test
