#include <optional>

#include <gtest/gtest.h>

#include <tenure/lock_manager/lock_manager.hpp>

#include "support/lock_manager/locks.hpp"

namespace tenure::test {
namespace {

// 004.029, 004.092
TEST(Requests, a_free_lock_is_granted) {
  const LockManager locks;

  EXPECT_EQ(locks.request(t1, row_a, exclusive), RequestResult::granted());

  EXPECT_EQ(locks.mode_held(t1, row_a), exclusive);
  EXPECT_EQ(locks.waiting_count(), 0U);
}

// 004.029, 004.030, 004.040, 004.092
TEST(Requests, a_held_lock_is_waited_for) {
  const LockManager locks;
  locks.try_acquire(t1, row_a, exclusive).value();

  EXPECT_EQ(locks.request(t2, row_a, shared), RequestResult::waiting());

  EXPECT_EQ(locks.waiting_count(), 1U);
  EXPECT_EQ(locks.mode_held(t2, row_a), std::nullopt);
}

// 004.031, 004.092, 004-B1: granted in its turn, not at the next poll.
TEST(Requests, a_pending_request_is_granted_by_the_release) {
  const LockManager locks;
  locks.try_acquire(t1, row_a, exclusive).value();
  ASSERT_TRUE(locks.request(t2, row_a, exclusive).is_waiting());

  locks.release(t1, row_a).value();

  EXPECT_EQ(locks.mode_held(t2, row_a), exclusive);
  EXPECT_EQ(locks.waiting_count(), 0U);
  EXPECT_TRUE(locks.request(t2, row_a, exclusive).is_granted());
}

// 004.030, 004.031, 004.092
TEST(Requests, a_repeated_request_keeps_its_position) {
  const LockManager locks;
  locks.try_acquire(t1, row_a, exclusive).value();
  ASSERT_TRUE(locks.request(t2, row_a, exclusive).is_waiting());
  ASSERT_TRUE(locks.request(t3, row_a, exclusive).is_waiting());

  EXPECT_TRUE(locks.request(t2, row_a, exclusive).is_waiting());
  locks.release(t1, row_a).value();

  EXPECT_EQ(locks.waiting_count(), 1U);
  EXPECT_EQ(locks.mode_held(t2, row_a), exclusive);
}

// 004-B13: claiming what was granted is not a second acquisition; asking once more is.
TEST(Requests, a_claimed_grant_counts_once) {
  const LockManager locks;
  locks.try_acquire(t1, row_a, exclusive).value();
  ASSERT_TRUE(locks.request(t2, row_a, exclusive).is_waiting());
  locks.release(t1, row_a).value();
  ASSERT_TRUE(locks.request(t2, row_a, exclusive).is_granted());

  ASSERT_TRUE(locks.request(t2, row_a, exclusive).is_granted());

  locks.release(t2, row_a).value();
  EXPECT_EQ(locks.mode_held(t2, row_a), exclusive);
  locks.release(t2, row_a).value();
  EXPECT_EQ(locks.holder_count(row_a), 0U);
}

// 004.015
TEST(Requests, a_request_for_a_held_lock_is_granted_and_counted) {
  const LockManager locks;
  locks.try_acquire(t1, row_a, exclusive).value();

  EXPECT_TRUE(locks.request(t1, row_a, shared).is_granted());

  locks.release(t1, row_a).value();
  EXPECT_EQ(locks.mode_held(t1, row_a), exclusive);
}

// A stronger request replaces the pending one, and is queued behind requests that came in between.
TEST(Requests, another_mode_replaces_the_pending_one_at_the_end_of_the_queue) {
  const LockManager locks;
  locks.try_acquire(t1, row_a, exclusive).value();
  ASSERT_TRUE(locks.request(t2, row_a, exclusive).is_waiting());
  ASSERT_TRUE(locks.request(t3, row_a, exclusive).is_waiting());

  ASSERT_TRUE(locks.request(t2, row_a, shared).is_waiting());
  locks.release(t1, row_a).value();

  EXPECT_EQ(locks.mode_held(t3, row_a), exclusive);
  EXPECT_EQ(locks.mode_held(t2, row_a), std::nullopt);
  locks.release(t3, row_a).value();
  EXPECT_EQ(locks.mode_held(t2, row_a), shared);
}

// 004.034
TEST(Requests, a_cancelled_wait_leaves_no_trace) {
  const LockManager locks;
  locks.try_acquire(t1, row_a, exclusive).value();
  ASSERT_TRUE(locks.request(t2, row_a, exclusive).is_waiting());

  locks.cancel_wait(t2);

  EXPECT_EQ(locks.waiting_count(), 0U);
  locks.release(t1, row_a).value();
  EXPECT_EQ(locks.holder_count(row_a), 0U);
  EXPECT_TRUE(locks.snapshot().locks.empty());
}

// 004.034: an unclaimed grant would never be released.
TEST(Requests, cancel_wait_releases_an_unclaimed_grant) {
  const LockManager locks;
  locks.try_acquire(t1, row_a, exclusive).value();
  ASSERT_TRUE(locks.request(t2, row_a, exclusive).is_waiting());
  ASSERT_TRUE(locks.request(t3, row_a, exclusive).is_waiting());
  locks.release(t1, row_a).value();

  locks.cancel_wait(t2);

  EXPECT_EQ(locks.mode_held(t2, row_a), std::nullopt);
  EXPECT_EQ(locks.mode_held(t3, row_a), exclusive);
}

// 004.034
TEST(Requests, cancelling_takes_no_lock_that_was_claimed) {
  const LockManager locks;
  locks.try_acquire(t1, row_a, exclusive).value();
  ASSERT_TRUE(locks.request(t2, row_a, exclusive).is_waiting());
  locks.release(t1, row_a).value();
  ASSERT_TRUE(locks.request(t2, row_a, exclusive).is_granted());

  locks.cancel_wait(t2);
  locks.cancel_wait(TxnId{99});

  EXPECT_EQ(locks.mode_held(t2, row_a), exclusive);
}

// 004.034: the waiter that left was all that barred the reader.
TEST(Requests, a_cancelled_writer_unblocks_the_readers_behind_it) {
  const LockManager locks;
  locks.try_acquire(t1, row_a, shared).value();
  ASSERT_TRUE(locks.request(t2, row_a, exclusive).is_waiting());
  ASSERT_TRUE(locks.request(t3, row_a, shared).is_waiting());

  locks.cancel_wait(t2);

  EXPECT_EQ(locks.mode_held(t3, row_a), shared);
}

// 004.034: the upgrade is cancelled, and the hold before it stays.
TEST(Requests, a_cancelled_upgrade_keeps_the_weaker_lock) {
  const LockManager locks;
  locks.try_acquire(t1, row_a, shared).value();
  locks.try_acquire(t2, row_a, shared).value();
  ASSERT_TRUE(locks.request(t1, row_a, exclusive).is_waiting());

  locks.cancel_wait(t1);

  EXPECT_EQ(locks.mode_held(t1, row_a), shared);
  EXPECT_EQ(locks.waiting_count(), 0U);
  locks.release(t1, row_a).value();
  EXPECT_EQ(locks.mode_held(t1, row_a), std::nullopt);
}

// 004-B10: the document kept one wait per transaction, and the second overwrote the first.
TEST(Requests, a_transaction_waits_for_several_locks_at_once) {
  const LockManager locks;
  locks.try_acquire(t1, row_a, exclusive).value();
  locks.try_acquire(t1, row_b, exclusive).value();
  ASSERT_TRUE(locks.request(t2, row_a, exclusive).is_waiting());
  ASSERT_TRUE(locks.request(t2, row_b, exclusive).is_waiting());
  EXPECT_EQ(locks.waiting_count(), 1U);

  locks.release(t1, row_a).value();
  EXPECT_EQ(locks.mode_held(t2, row_a), exclusive);
  EXPECT_EQ(locks.waiting_count(), 1U);
  locks.release(t1, row_b).value();

  EXPECT_EQ(locks.mode_held(t2, row_b), exclusive);
  EXPECT_EQ(locks.waiting_count(), 0U);
}

// 004-B10
TEST(Requests, cancelling_calls_off_every_pending_request) {
  const LockManager locks;
  locks.try_acquire(t1, row_a, exclusive).value();
  locks.try_acquire_range(t1, space_a, KeyRange::all(), exclusive).value();
  ASSERT_TRUE(locks.request(t2, row_a, exclusive).is_waiting());
  ASSERT_TRUE(locks.request(t2, keys(space_a, 1, 2), exclusive).is_waiting());

  locks.cancel_wait(t2);

  EXPECT_EQ(wait_total(locks), 0U);
}

// 004.022, 004-B11
TEST(Requests, release_all_cancels_pending_requests) {
  const LockManager locks;
  locks.try_acquire(t1, row_a, exclusive).value();
  locks.try_acquire(t2, row_b, exclusive).value();
  ASSERT_TRUE(locks.request(t2, row_a, exclusive).is_waiting());

  EXPECT_EQ(locks.release_all(t2), 1U);

  EXPECT_EQ(locks.waiting_count(), 0U);
  locks.release(t1, row_a).value();
  EXPECT_EQ(locks.holder_count(row_a), 0U);
}

// 004.084: the loop of the document, with a wait in it.
TEST(Requests, the_loop_acquire_or_abort_ends_with_the_lock) {
  const LockManager locks;
  locks.try_acquire(t1, row_a, exclusive).value();
  bool was_granted = false;

  for (int time = 0; time < 10 && !was_granted; ++time) {
    const RequestResult answer = locks.request(t2, row_a, exclusive);
    was_granted = answer.is_granted();
    ASSERT_EQ(answer.deadlock(), nullptr);
    locks.release_all(t1);
  }

  EXPECT_TRUE(was_granted);
  EXPECT_EQ(locks.mode_held(t2, row_a), exclusive);
}

// 004.029: exactly one of the four is true. 004.044 is proven in tests/compile_fail.
TEST(Acquisitions, an_answer_is_one_of_four) {
  const RequestResult waiting = RequestResult::waiting();
  const RequestResult deadlock{Deadlock{.victim = t1, .cycle = {t1, t2}}};
  const RequestResult error{Error{.code = Errc::invalid_argument}};

  EXPECT_TRUE(waiting.is_waiting() && !waiting.is_granted());
  EXPECT_TRUE(waiting.deadlock() == nullptr && waiting.error() == nullptr);
  EXPECT_TRUE(RequestResult::granted().is_granted() && !RequestResult::granted().is_waiting());
  ASSERT_NE(deadlock.deadlock(), nullptr);
  EXPECT_EQ(deadlock.deadlock()->victim, t1);
  EXPECT_FALSE(deadlock.is_granted() || deadlock.is_waiting() || deadlock.error() != nullptr);
  EXPECT_TRUE(refused(error, Errc::invalid_argument));
}

}  // namespace
}  // namespace tenure::test
