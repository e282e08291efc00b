#include <optional>
#include <string>

#include <gtest/gtest.h>

#include <tenure/lock_manager/lock_manager.hpp>

#include "support/lock_manager/locks.hpp"

namespace tenure::test {
namespace {

// 004-B7: the victim in the document was never notified, and its next request was "clean".
TEST(Victims, every_next_call_that_asks_for_a_lock_is_answered_with_the_deadlock) {
  const LockManager locks;
  ASSERT_TRUE(gives_way(close_cycle(locks), t2));

  EXPECT_TRUE(gives_way(locks.request(t2, row_a, exclusive), t2));
  EXPECT_TRUE(gives_way(locks.request(t2, row_c, shared), t2));
  EXPECT_TRUE(refused(locks.try_acquire(t2, row_c, shared), Errc::deadlock));
  EXPECT_TRUE(refused(locks.acquire(t2, row_c, shared, with_test_timeout()), Errc::deadlock));
  EXPECT_TRUE(
      refused(locks.try_acquire_range(t2, space_a, KeyRange::all(), shared), Errc::deadlock));
  EXPECT_TRUE(refused(locks.try_acquire(t2, row_b, shared), Errc::deadlock)) << "held already";

  EXPECT_EQ(locks.holder_count(row_c), 0U);
}

// 004-B7: the document let the finder release the victim's locks under its feet.
TEST(Victims, the_locks_stay_until_the_victim_releases_them_itself) {
  const LockManager locks;
  ASSERT_TRUE(gives_way(close_cycle(locks), t2));

  EXPECT_EQ(locks.mode_held(t2, row_b), exclusive);
  EXPECT_EQ(locks.mode_held(t1, row_b), std::nullopt);
  EXPECT_EQ(locks.release_all(t2), 1U);

  EXPECT_EQ(locks.mode_held(t1, row_b), exclusive);
  EXPECT_TRUE(locks.request(t1, row_b, exclusive).is_granted());
}

// 004-B7
TEST(Victims, a_notified_victim_that_released_everything_can_lock_again) {
  const LockManager locks;
  ASSERT_TRUE(gives_way(close_cycle(locks), t2));
  ASSERT_TRUE(gives_way(locks.request(t2, row_c, exclusive), t2));

  EXPECT_EQ(locks.release_all(t2), 1U);

  EXPECT_TRUE(locks.request(t2, row_c, exclusive).is_granted());
}

// 004-B7: a victim that closes the cycle learns it from the answer.
TEST(Victims, a_victim_that_closed_the_cycle_is_notified_by_that_call) {
  const LockManager locks({.victim = VictimPolicy::oldest});
  ASSERT_TRUE(gives_way(close_cycle(locks), t1));

  EXPECT_EQ(locks.release_all(t1), 1U);

  EXPECT_TRUE(locks.request(t1, row_c, exclusive).is_granted());
}

// 004-B7, 004.084: the document's loop calls release_all for any victim.
TEST(Victims, a_victim_whose_locks_another_thread_released_is_still_notified) {
  const LockManager locks;
  ASSERT_TRUE(gives_way(close_cycle(locks), t2));

  EXPECT_EQ(locks.release_all(t2), 1U);

  EXPECT_EQ(locks.mode_held(t1, row_b), exclusive);
  EXPECT_TRUE(gives_way(locks.request(t2, row_c, exclusive), t2));
  EXPECT_EQ(locks.release_all(t2), 0U) << "which acknowledges the error";
  EXPECT_TRUE(locks.request(t2, row_c, exclusive).is_granted());
}

// 004-B7: else an id that is used again would be a victim without a crime.
TEST(Victims, a_release_all_without_locks_clears_the_victim) {
  const LockManager locks;
  ASSERT_TRUE(gives_way(close_cycle(locks), t2));
  ASSERT_EQ(locks.release_all(t2), 1U);

  EXPECT_EQ(locks.release_all(t2), 0U);

  EXPECT_TRUE(locks.request(t2, row_c, exclusive).is_granted());
}

// 004-B7: a release is always allowed.
TEST(Victims, a_victim_releases_locks_one_by_one) {
  const LockManager locks;
  ASSERT_TRUE(gives_way(close_cycle(locks), t2));

  EXPECT_TRUE(succeeded(locks.release(t2, row_b)));

  EXPECT_EQ(locks.mode_held(t1, row_b), exclusive);
  EXPECT_TRUE(refused(locks.try_acquire(t2, row_c, shared), Errc::deadlock));
}

// 004-B7
TEST(Victims, the_detail_names_all_members_of_the_cycle) {
  const LockManager locks;
  ASSERT_TRUE(gives_way(close_cycle(locks, TxnId{7001}, TxnId{8002}), TxnId{8002}));

  const auto answer = locks.try_acquire(TxnId{8002}, row_c, shared);

  ASSERT_TRUE(refused(answer, Errc::deadlock));
  EXPECT_NE(answer.error().detail.find("7001"), std::string::npos) << answer.error().detail;
  EXPECT_NE(answer.error().detail.find("8002"), std::string::npos) << answer.error().detail;
}

// 004-B7
TEST(Victims, a_transaction_returns_the_deadlock_it_is_the_victim_of) {
  const LockManager locks;
  const Transaction older = locks.begin({.id = t1});
  const Transaction younger = locks.begin({.id = t2});
  EXPECT_EQ(younger.deadlock(), std::nullopt);

  ASSERT_TRUE(gives_way(close_cycle(locks), t2));

  ASSERT_TRUE(younger.deadlock());
  EXPECT_EQ(younger.deadlock()->victim, t2);
  EXPECT_TRUE(is_cycle(younger.deadlock()->cycle, {t1, t2}));
  EXPECT_EQ(older.deadlock(), std::nullopt);
}

// 004-B1, 004-B7
TEST(Victims, a_parked_victim_is_woken_with_a_deadlock_error) {
  const LockManager locks;
  locks.try_acquire(t1, row_a, exclusive).value();
  locks.try_acquire(t2, row_b, exclusive).value();
  auto younger = acquire_in_background(locks, t2, row_a, exclusive);
  ASSERT_TRUE(eventually_waiting(locks, 1));

  auto older = acquire_in_background(locks, t1, row_b, exclusive);

  EXPECT_TRUE(refused(younger.get(), Errc::deadlock));
  EXPECT_EQ(locks.release_all(t2), 1U);
  EXPECT_TRUE(succeeded(older.get()));
}

// 004-B1, 004-B7: the call that closes the cycle does not park first.
TEST(Victims, a_victim_that_closes_the_cycle_does_not_park) {
  const LockManager locks;
  locks.try_acquire(t1, row_a, exclusive).value();
  locks.try_acquire(t2, row_b, exclusive).value();
  ASSERT_TRUE(locks.request(t1, row_b, exclusive).is_waiting());

  EXPECT_TRUE(refused(locks.acquire(t2, row_a, exclusive, with_test_timeout()), Errc::deadlock));

  EXPECT_EQ(locks.waiting_count(), 1U);
}

// 004-B7: all threads of the victim get the error, also those that wait for another lock.
TEST(Victims, all_threads_of_the_victim_get_the_error) {
  const LockManager locks;
  locks.try_acquire(t1, row_a, exclusive).value();
  locks.try_acquire(t3, row_c, exclusive).value();
  locks.try_acquire(t2, row_b, exclusive).value();
  auto in_cycle = acquire_in_background(locks, t2, row_a, exclusive);
  auto elsewhere = acquire_in_background(locks, t2, row_c, exclusive);
  ASSERT_TRUE(eventually_waiting(locks, 2));

  ASSERT_TRUE(gives_way(locks.request(t1, row_b, exclusive), t2));

  EXPECT_TRUE(refused(in_cycle.get(), Errc::deadlock));
  EXPECT_TRUE(refused(elsewhere.get(), Errc::deadlock));
}

// 004.034: calling off the wait that closed the cycle does not make the victim innocent.
TEST(Victims, a_victim_stays_one_when_the_others_stop_waiting) {
  const LockManager locks;
  ASSERT_TRUE(gives_way(close_cycle(locks), t2));

  locks.cancel_wait(t1);

  EXPECT_TRUE(refused(locks.try_acquire(t2, row_c, shared), Errc::deadlock));
}

}  // namespace
}  // namespace tenure::test
