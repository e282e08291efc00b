#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include <tenure/lock_manager/lock_manager.hpp>

#include "support/lock_manager/locks.hpp"

namespace tenure::test {
namespace {

constexpr std::uint64_t largest = std::numeric_limits<std::uint64_t>::max();

// 004.021
TEST(BadInput, a_lock_that_is_not_held_cannot_be_released) {
  const LockManager locks;
  const BytesOf bytes{.space = space_a, .range = BytesRange::all()};

  EXPECT_TRUE(refused(locks.release(t1, row_a), Errc::not_held));
  EXPECT_TRUE(refused(locks.release(t1, "name"), Errc::not_held));
  EXPECT_TRUE(refused(locks.release(t1, keys(space_a, 1, 2)), Errc::not_held));
  EXPECT_TRUE(refused(locks.release(t1, bytes), Errc::not_held));
  EXPECT_TRUE(refused(locks.release_range(t1, space_a, KeyRange::all()), Errc::not_held));
}

// 004.021: a waiter holds nothing, and its place is not released either.
TEST(BadInput, a_waiting_request_cannot_be_released) {
  const LockManager locks;
  locks.try_acquire(t1, row_a, exclusive).value();
  ASSERT_TRUE(locks.request(t2, row_a, exclusive).is_waiting());

  EXPECT_TRUE(refused(locks.release(t2, row_a), Errc::not_held));

  EXPECT_EQ(locks.waiting_count(), 1U);
}

// 004.022
TEST(BadInput, an_unknown_transaction_has_nothing_to_release) {
  const LockManager locks;

  EXPECT_EQ(locks.release_all(TxnId{4711}), 0U);
  EXPECT_EQ(locks.mode_held(TxnId{4711}, row_a), std::nullopt);
  locks.cancel_wait(TxnId{4711});
  EXPECT_TRUE(locks.snapshot().locks.empty());
}

// 004-B19
TEST(BadInput, an_empty_name_and_one_too_long_are_refused_by_every_call) {
  const LockManager locks;
  for (const std::string& name : {std::string(), std::string(name_bytes_max + 1, 'a')}) {
    EXPECT_TRUE(refused(locks.try_acquire(t1, name, shared), Errc::invalid_argument));
    EXPECT_TRUE(refused(locks.acquire(t1, name, shared), Errc::invalid_argument));
    EXPECT_TRUE(refused(locks.request(t1, name, shared), Errc::invalid_argument));
    EXPECT_EQ(locks.holder_count(name), 0U);
    EXPECT_EQ(locks.mode_held(t1, name), std::nullopt);
  }
  EXPECT_TRUE(locks.snapshot().locks.empty());
}

// 004-B19
TEST(BadInput, the_longest_name_has_1024_bytes) {
  const LockManager locks;
  const std::string name(name_bytes_max, 'a');

  EXPECT_TRUE(succeeded(locks.try_acquire(t1, name, exclusive)));
  EXPECT_TRUE(refused(locks.try_acquire(t2, name, shared), Errc::would_block));
  EXPECT_TRUE(succeeded(locks.release(t1, name)));
}

// 004.070: zero and the largest number are ids like any other.
TEST(BadInput, every_number_is_a_transaction_and_a_resource) {
  const LockManager locks;
  for (const std::uint64_t number : {std::uint64_t{0}, largest}) {
    EXPECT_TRUE(succeeded(locks.try_acquire(TxnId{number}, ResourceId{number}, exclusive)));
    EXPECT_TRUE(refused(locks.try_acquire(t1, ResourceId{number}, shared), Errc::would_block));
    EXPECT_TRUE(succeeded(
        locks.try_acquire(TxnId{number}, KeysOf{ResourceId{number}, KeyRange::all()}, exclusive)));
    EXPECT_EQ(locks.release_all(TxnId{number}), 2U);
  }
}

// 004.055, 004.070
TEST(BadInput, transaction_zero_is_the_oldest_in_a_deadlock) {
  const LockManager locks;

  EXPECT_TRUE(gives_way(close_cycle(locks, TxnId{0}, TxnId{largest}), TxnId{largest}));
}

// 004.068
TEST(BadInput, the_largest_keys_are_locked_to_the_end) {
  const LockManager locks;
  locks.try_acquire_range(t1, space_a, KeyRange::of(largest - 1, largest).value(), exclusive)
      .value();

  EXPECT_TRUE(refused(locks.try_acquire_range(t2, space_a, KeyRange::point(largest), shared),
                      Errc::would_block));
  EXPECT_TRUE(
      succeeded(locks.try_acquire_range(t2, space_a, KeyRange::point(largest - 2), exclusive)));
  EXPECT_TRUE(succeeded(locks.try_acquire_range(t2, space_a, KeyRange::point(0), exclusive)));
}

// A queue without an end is a memory leak with a delay.
TEST(Limits, a_waiter_beyond_the_limit_is_refused_and_changes_nothing) {
  const LockManager locks({.waiters_per_lock_max = 2});
  locks.try_acquire(t1, row_a, exclusive).value();
  ASSERT_TRUE(locks.request(t2, row_a, exclusive).is_waiting());
  ASSERT_TRUE(locks.request(t3, row_a, exclusive).is_waiting());

  EXPECT_TRUE(refused(locks.request(t4, row_a, exclusive), Errc::resource_exhausted));
  EXPECT_TRUE(
      refused(locks.acquire(t4, row_a, exclusive, with_test_timeout()), Errc::resource_exhausted));

  EXPECT_EQ(locks.waiting_count(), 2U);
  EXPECT_TRUE(locks.request(t2, row_a, exclusive).is_waiting())
      << "a waiter may repeat its request";
  EXPECT_TRUE(succeeded(locks.try_acquire(t4, row_b, exclusive))) << "other locks have room";
}

TEST(Limits, a_queue_position_that_becomes_free_can_be_used_again) {
  const LockManager locks({.waiters_per_lock_max = 1});
  locks.try_acquire(t1, row_a, exclusive).value();
  ASSERT_TRUE(locks.request(t2, row_a, exclusive).is_waiting());
  locks.cancel_wait(t2);

  EXPECT_TRUE(locks.request(t3, row_a, exclusive).is_waiting());
}

TEST(Limits, a_lock_beyond_the_limit_is_refused_and_changes_nothing) {
  const LockManager locks({.locks_per_transaction_max = 3});
  locks.try_acquire(t1, row_a, shared).value();
  locks.try_acquire(t1, "name", shared).value();
  locks.try_acquire(t1, keys(space_a, 1, 2), shared).value();

  EXPECT_TRUE(refused(locks.try_acquire(t1, row_b, shared), Errc::resource_exhausted));
  EXPECT_TRUE(
      refused(locks.try_acquire(t1, keys(space_a, 3, 4), shared), Errc::resource_exhausted));
  EXPECT_TRUE(refused(locks.request(t1, row_b, shared), Errc::resource_exhausted));

  EXPECT_EQ(locks.holder_count(row_b), 0U);
  EXPECT_TRUE(succeeded(locks.try_acquire(t1, row_a, exclusive))) << "what is held is no new lock";
  EXPECT_EQ(locks.release_all(t1), 3U);
}

TEST(Limits, a_released_lock_makes_room_for_another) {
  const LockManager locks({.locks_per_transaction_max = 1});
  locks.try_acquire(t1, row_a, shared).value();
  locks.release(t1, row_a).value();

  EXPECT_TRUE(succeeded(locks.try_acquire(t1, row_b, shared)));
}

// 004-B13: a count that wraps to zero would free a lock that is held 65,536 times.
TEST(Limits, a_lock_is_acquired_65535_times_and_no_more) {
  const LockManager locks;
  for (int time = 0; time < 65'535; ++time) {
    ASSERT_TRUE(succeeded(locks.try_acquire(t1, row_a, shared)));
  }

  EXPECT_TRUE(refused(locks.try_acquire(t1, row_a, shared), Errc::resource_exhausted));
  EXPECT_TRUE(refused(locks.request(t1, row_a, exclusive), Errc::resource_exhausted));
  EXPECT_EQ(locks.mode_held(t1, row_a), shared);

  for (int time = 0; time < 65'535; ++time) {
    ASSERT_TRUE(succeeded(locks.release(t1, row_a)));
  }
  EXPECT_EQ(locks.holder_count(row_a), 0U);
}

}  // namespace
}  // namespace tenure::test
