#include <cstdint>
#include <limits>
#include <optional>

#include <gtest/gtest.h>

#include <tenure/lock_manager/lock_manager.hpp>

#include "support/lock_manager/locks.hpp"

namespace tenure::test {
namespace {

KeyRange span(std::uint64_t start, std::uint64_t end) {
  return KeyRange::of(start, end).value();
}

// 004.025, 004.091
TEST(RangeLocks, readers_of_overlapping_ranges_share) {
  const LockManager locks;
  locks.try_acquire_range(t1, space_a, span(100, 200), shared).value();

  EXPECT_TRUE(succeeded(locks.try_acquire_range(t2, space_a, span(150, 250), shared)));
}

// 004.025, 004.083, 004.091: the insert that would be a phantom.
TEST(RangeLocks, a_reader_of_a_range_blocks_the_insert_of_a_key_inside) {
  const LockManager locks;
  locks.try_acquire_range(t1, space_a, span(100, 200), shared).value();

  EXPECT_TRUE(refused(locks.try_acquire_range(t2, space_a, KeyRange::point(150), exclusive),
                      Errc::would_block));
}

// 004.067, 004.091
TEST(RangeLocks, ranges_that_share_one_key_conflict_and_neighbours_do_not) {
  const LockManager locks;
  locks.try_acquire_range(t1, space_a, span(100, 200), exclusive).value();

  EXPECT_TRUE(
      refused(locks.try_acquire_range(t2, space_a, span(200, 300), shared), Errc::would_block));
  EXPECT_TRUE(succeeded(locks.try_acquire_range(t2, space_a, span(201, 300), exclusive)));
  EXPECT_TRUE(succeeded(locks.try_acquire_range(t3, space_a, span(0, 99), exclusive)));
}

// 004.005, 004.026, 004.091
TEST(RangeLocks, a_range_in_another_space_never_conflicts) {
  const LockManager locks = LockManager::with_shards(1);
  locks.try_acquire_range(t1, space_a, KeyRange::all(), exclusive).value();

  EXPECT_TRUE(succeeded(locks.try_acquire_range(t2, space_b, KeyRange::all(), exclusive)));
}

// 004.027, 004.091
TEST(RangeLocks, ranges_of_one_transaction_never_conflict_and_are_counted_each) {
  const LockManager locks;

  locks.try_acquire_range(t1, space_a, span(1, 10), exclusive).value();
  locks.try_acquire_range(t1, space_a, span(5, 15), shared).value();
  locks.try_acquire_range(t1, space_a, span(1, 10), shared).value();

  EXPECT_EQ(locks.range_count(space_a), 3U);
  EXPECT_EQ(locks.release_all(t1), 3U);
}

// 004.028, 004.091
TEST(RangeLocks, the_release_of_a_range_frees_it) {
  const LockManager locks;
  locks.try_acquire_range(t1, space_a, span(1, 10), exclusive).value();

  EXPECT_TRUE(succeeded(locks.release_range(t1, space_a, span(1, 10))));

  EXPECT_EQ(locks.range_count(space_a), 0U);
  EXPECT_TRUE(refused(locks.release_range(t1, space_a, span(1, 10)), Errc::not_held));
  EXPECT_TRUE(succeeded(locks.try_acquire_range(t2, space_a, span(1, 10), exclusive)));
}

// 004.028: a part, a larger range, another's range and another space are not held.
TEST(RangeLocks, only_the_exact_range_is_released_by_its_holder) {
  const LockManager locks;
  locks.try_acquire_range(t1, space_a, span(1, 10), exclusive).value();

  EXPECT_TRUE(refused(locks.release_range(t1, space_a, span(1, 9)), Errc::not_held));
  EXPECT_TRUE(refused(locks.release_range(t1, space_a, span(1, 11)), Errc::not_held));
  EXPECT_TRUE(refused(locks.release_range(t2, space_a, span(1, 10)), Errc::not_held));
  EXPECT_TRUE(refused(locks.release_range(t1, space_b, span(1, 10)), Errc::not_held));

  EXPECT_EQ(locks.range_count(space_a), 1U);
}

// 004.028, 004-B21: the document released any of them.
TEST(RangeLocks, the_last_acquired_entry_of_a_range_is_released_first) {
  const LockManager locks;
  locks.try_acquire_range(t1, space_a, span(1, 10), shared).value();
  locks.try_acquire_range(t1, space_a, span(1, 10), exclusive).value();
  EXPECT_EQ(locks.mode_held(t1, keys(space_a, 1, 10)), exclusive);

  locks.release_range(t1, space_a, span(1, 10)).value();

  EXPECT_EQ(locks.mode_held(t1, keys(space_a, 1, 10)), shared);
  EXPECT_EQ(locks.range_count(space_a), 1U);
}

// 004-B21: a holder of X that acquires S too releases the S first.
TEST(RangeLocks, the_weaker_of_two_entries_is_released_first_if_it_came_last) {
  const LockManager locks;
  locks.try_acquire_range(t1, space_a, span(1, 10), exclusive).value();
  locks.try_acquire_range(t1, space_a, span(1, 10), shared).value();

  locks.release_range(t1, space_a, span(1, 10)).value();

  EXPECT_EQ(locks.mode_held(t1, keys(space_a, 1, 10)), exclusive);
}

// 004-B21
TEST(RangeLocks, the_mode_held_on_one_range_is_the_join_of_its_entries) {
  const LockManager locks;
  locks.try_acquire_range(t1, space_a, span(1, 10), shared).value();
  locks.try_acquire_range(t1, space_a, span(1, 10), intention_exclusive).value();

  EXPECT_EQ(locks.mode_held(t1, keys(space_a, 1, 10)), shared_intention_exclusive);
  EXPECT_EQ(locks.mode_held(t1, keys(space_a, 1, 9)), std::nullopt);
  EXPECT_EQ(locks.mode_held(t2, keys(space_a, 1, 10)), std::nullopt);
}

// 004.037, 004.039
TEST(RangeLocks, holders_are_counted_by_exact_range_and_ranges_by_space) {
  const LockManager locks;
  locks.try_acquire_range(t1, space_a, span(1, 10), shared).value();
  locks.try_acquire_range(t1, space_a, span(1, 10), shared).value();
  locks.try_acquire_range(t2, space_a, span(1, 10), shared).value();
  locks.try_acquire_range(t2, space_a, span(1, 11), shared).value();

  EXPECT_EQ(locks.holder_count(keys(space_a, 1, 10)), 2U);
  EXPECT_EQ(locks.holder_count(keys(space_a, 5, 5)), 0U);
  EXPECT_EQ(locks.range_count(space_a), 4U);
  EXPECT_EQ(locks.range_count(space_b), 0U);
}

// 004.091
TEST(RangeLocks, intention_modes_coexist) {
  const LockManager locks;
  locks.try_acquire_range(t1, space_a, span(1, 10), intention_exclusive).value();

  EXPECT_TRUE(succeeded(locks.try_acquire_range(t2, space_a, span(5, 20), intention_exclusive)));
  EXPECT_TRUE(succeeded(locks.try_acquire_range(t3, space_a, span(5, 20), intention_shared)));
}

// 004.022, 004.091
TEST(RangeLocks, release_all_frees_points_and_ranges) {
  const LockManager locks;
  locks.try_acquire(t1, row_a, exclusive).value();
  locks.try_acquire_range(t1, space_a, span(1, 10), exclusive).value();

  EXPECT_EQ(locks.release_all(t1), 2U);

  EXPECT_EQ(locks.holder_count(row_a), 0U);
  EXPECT_EQ(locks.range_count(space_a), 0U);
}

// 004-B4: one key is a range of length one, and both ways of asking mean the same lock.
TEST(RangeLocks, points_and_ranges_of_a_space_meet) {
  const LockManager locks;
  locks.try_acquire(t1, KeysOf{.space = space_a, .range = KeyRange::point(5)}, exclusive).value();

  EXPECT_TRUE(
      refused(locks.try_acquire_range(t2, space_a, span(1, 10), shared), Errc::would_block));
  locks.release_range(t1, space_a, KeyRange::point(5)).value();
  EXPECT_TRUE(succeeded(locks.try_acquire_range(t2, space_a, span(1, 10), shared)));
}

// 004.068
TEST(RangeLocks, the_largest_key_is_locked_like_any_other) {
  const std::uint64_t last = std::numeric_limits<std::uint64_t>::max();
  const LockManager locks;
  locks.try_acquire_range(t1, space_a, KeyRange::point(last), exclusive).value();

  EXPECT_TRUE(refused(locks.try_acquire_range(t2, space_a, KeyRange::at_least(7), shared),
                      Errc::would_block));
  EXPECT_TRUE(succeeded(locks.try_acquire_range(t2, space_a, span(0, last - 1), exclusive)));
}

// 004-B20
TEST(RangeLocks, byte_strings_have_ranges_too) {
  const LockManager locks;
  locks.try_acquire(t1, BytesOf{space_a, BytesRange::prefix("user/")}, shared).value();

  const auto inside = BytesOf{space_a, BytesRange::point("user/42")};
  const auto outside = BytesOf{space_a, BytesRange::point("users")};

  EXPECT_TRUE(refused(locks.try_acquire(t2, inside, exclusive), Errc::would_block));
  EXPECT_TRUE(succeeded(locks.try_acquire(t2, outside, exclusive)));
  EXPECT_EQ(locks.range_count(space_a), 2U);
}

// 004-B20
TEST(RangeLocks, a_range_of_bytes_is_released_by_its_exact_ends) {
  const LockManager locks;
  const auto users = BytesOf{space_a, BytesRange::prefix("user/")};
  locks.try_acquire(t1, users, exclusive).value();

  EXPECT_TRUE(
      refused(locks.release(t1, BytesOf{space_a, BytesRange::at_least("user/")}), Errc::not_held));
  EXPECT_TRUE(succeeded(locks.release(t1, users)));
  EXPECT_EQ(locks.range_count(space_a), 0U);
}

// 004-B2: strict order also where two waiters only share a few keys.
TEST(RangeLocks, a_waiting_writer_bars_later_readers_of_keys_it_wants) {
  const LockManager locks;
  locks.try_acquire_range(t1, space_a, span(1, 10), shared).value();
  ASSERT_TRUE(locks.request(t2, keys(space_a, 5, 20), exclusive).is_waiting());

  EXPECT_TRUE(
      refused(locks.try_acquire_range(t3, space_a, span(18, 30), shared), Errc::would_block));
  EXPECT_TRUE(succeeded(locks.try_acquire_range(t3, space_a, span(21, 30), shared)));
}

// 004-B1, 004-B3
TEST(RangeLocks, a_waiting_range_is_granted_when_the_last_overlap_is_released) {
  const LockManager locks;
  locks.try_acquire_range(t1, space_a, span(1, 10), shared).value();
  locks.try_acquire_range(t2, space_a, span(20, 30), shared).value();
  ASSERT_TRUE(locks.request(t3, keys(space_a, 5, 25), exclusive).is_waiting());

  locks.release_range(t1, space_a, span(1, 10)).value();
  EXPECT_EQ(locks.mode_held(t3, keys(space_a, 5, 25)), std::nullopt);
  locks.release_range(t2, space_a, span(20, 30)).value();

  EXPECT_EQ(locks.mode_held(t3, keys(space_a, 5, 25)), exclusive);
  EXPECT_EQ(locks.waiting_count(), 0U);
}

// 004-B21: a request inside a held range precedes requests of non-holders.
TEST(RangeLocks, a_request_inside_a_held_range_is_an_upgrade) {
  const LockManager locks;
  locks.try_acquire_range(t1, space_a, span(1, 10), shared).value();
  ASSERT_TRUE(locks.request(t2, keys(space_a, 5, 5), exclusive).is_waiting());

  EXPECT_TRUE(succeeded(locks.try_acquire_range(t1, space_a, span(4, 6), exclusive)));

  locks.release_range(t1, space_a, span(1, 10)).value();
  EXPECT_EQ(locks.mode_held(t2, keys(space_a, 5, 5)), std::nullopt);
}

// A request that only overlaps a held range waits in queue order.
TEST(RangeLocks, a_request_beyond_the_held_range_is_no_upgrade) {
  const LockManager locks;
  locks.try_acquire_range(t1, space_a, span(1, 10), shared).value();
  locks.try_acquire_range(t3, space_a, span(20, 20), shared).value();
  ASSERT_TRUE(locks.request(t2, keys(space_a, 20, 20), exclusive).is_waiting());

  EXPECT_TRUE(
      refused(locks.try_acquire_range(t1, space_a, span(10, 20), shared), Errc::would_block));
}

// 004-B14
TEST(RangeLocks, a_downgrade_weakens_the_entry_acquired_last) {
  const LockManager locks;
  locks.try_acquire_range(t1, space_a, span(1, 10), exclusive).value();
  ASSERT_TRUE(locks.request(t2, keys(space_a, 3, 3), shared).is_waiting());

  EXPECT_TRUE(succeeded(locks.downgrade(t1, keys(space_a, 1, 10), shared)));

  EXPECT_EQ(locks.mode_held(t1, keys(space_a, 1, 10)), shared);
  EXPECT_EQ(locks.mode_held(t2, keys(space_a, 3, 3)), shared);
}

// 004-B4: the four kinds are distinct even under one number.
TEST(Targets, the_four_kinds_never_conflict) {
  const LockManager locks = LockManager::with_shards(1);
  const ResourceId three{3};

  EXPECT_TRUE(succeeded(locks.try_acquire(t1, three, exclusive)));
  EXPECT_TRUE(succeeded(locks.try_acquire(t2, "3", exclusive)));
  EXPECT_TRUE(succeeded(locks.try_acquire(t3, KeysOf{three, KeyRange::all()}, exclusive)));
  EXPECT_TRUE(succeeded(locks.try_acquire(t4, BytesOf{three, BytesRange::all()}, exclusive)));

  EXPECT_EQ(locks.range_count(three), 2U);
}

}  // namespace
}  // namespace tenure::test
