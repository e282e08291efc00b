#include <bit>
#include <cstdint>
#include <optional>
#include <type_traits>

#include <gtest/gtest.h>

#include <tenure/lock_manager/lock_manager.hpp>

#include "support/lock_manager/locks.hpp"

namespace tenure::test {
namespace {

// 004.012, 004.041
TEST(Shards, their_number_is_rounded_up_to_a_power_of_two) {
  EXPECT_EQ(LockManager::with_shards(0).shards(), 1U);
  EXPECT_EQ(LockManager::with_shards(1).shards(), 1U);
  EXPECT_EQ(LockManager::with_shards(5).shards(), 8U);
  EXPECT_EQ(LockManager::with_shards(10).shards(), 16U);
  EXPECT_EQ(LockManager::with_shards(64).shards(), 64U);
}

// 004.003, 004.011, 004.041
TEST(Shards, a_manager_chooses_256_to_4096_by_itself) {
  const LockManager locks;

  EXPECT_TRUE(std::has_single_bit(locks.shards()));
  EXPECT_GE(locks.shards(), 256U);
  EXPECT_LE(locks.shards(), 4096U);
}

// 004.013
TEST(Shards, a_default_manager_has_as_many_as_one_with_default_options) {
  EXPECT_EQ(LockManager().shards(), LockManager(LockManagerOptions{}).shards());
  EXPECT_EQ(LockManager({.shards = 5}).shards(), 8U);
}

// 004.003, 004.004: many resources of one shard must not share a lock, nor one resource have two.
TEST(Shards, their_number_changes_no_answer) {
  for (const std::size_t shards : {1U, 2U, 64U, 4096U}) {
    const LockManager locks = LockManager::with_shards(shards);
    for (std::uint64_t number = 0; number < 5000; ++number) {
      ASSERT_TRUE(succeeded(locks.try_acquire(t1, ResourceId{number}, exclusive)));
      ASSERT_TRUE(refused(locks.try_acquire(t2, ResourceId{number}, shared), Errc::would_block));
    }
    EXPECT_EQ(locks.release_all(t1), 5000U);
  }
}

// 004.001: ids need no announcement and leave no trace.
TEST(PointLocks, a_transaction_exists_while_it_holds_or_waits) {
  const LockManager locks;

  locks.try_acquire(TxnId{77}, row_a, exclusive).value();
  locks.release(TxnId{77}, row_a).value();

  EXPECT_TRUE(locks.snapshot().locks.empty());
  EXPECT_EQ(locks.release_all(TxnId{77}), 0U);
}

// 004.002
TEST(PointLocks, a_constant_manager_does_everything_and_copies_share_the_table) {
  const LockManager locks;
  const LockManager copy = locks;
  static_assert(std::is_copy_constructible_v<LockManager>);

  locks.try_acquire(t1, row_a, exclusive).value();

  EXPECT_EQ(copy.mode_held(t1, row_a), exclusive);
  EXPECT_TRUE(refused(copy.try_acquire(t2, row_a, shared), Errc::would_block));
}

// 004.017, 004.037, 004.086
TEST(PointLocks, readers_share) {
  const LockManager locks;

  locks.try_acquire(t1, row_a, shared).value();
  locks.try_acquire(t2, row_a, shared).value();

  EXPECT_EQ(locks.holder_count(row_a), 2U);
}

// 004.006, 004.014, 004.086
TEST(PointLocks, a_writer_excludes_readers_and_writers) {
  const LockManager locks;
  locks.try_acquire(t1, row_a, exclusive).value();

  EXPECT_TRUE(refused(locks.try_acquire(t2, row_a, shared), Errc::conflict));
  EXPECT_TRUE(refused(locks.try_acquire(t2, row_a, exclusive), Errc::conflict));
}

// 004.086
TEST(PointLocks, a_reader_excludes_writers) {
  const LockManager locks;
  locks.try_acquire(t1, row_a, shared).value();

  EXPECT_TRUE(refused(locks.try_acquire(t2, row_a, exclusive), Errc::would_block));
}

// 004.014
TEST(PointLocks, a_conflict_changes_nothing) {
  const LockManager locks;
  locks.try_acquire(t1, row_a, exclusive).value();

  ASSERT_TRUE(refused(locks.try_acquire(t2, row_a, shared), Errc::would_block));

  EXPECT_EQ(locks.holder_count(row_a), 1U);
  EXPECT_EQ(locks.mode_held(t2, row_a), std::nullopt);
  EXPECT_EQ(locks.waiting_count(), 0U);
  EXPECT_EQ(locks.release_all(t2), 0U);
}

// 004.017, 004.057, 004.087
TEST(PointLocks, two_transactions_hold_what_the_matrix_allows_and_nothing_else) {
  for (const LockMode held : all_lock_modes) {
    for (const LockMode wanted : all_lock_modes) {
      const LockManager locks;
      locks.try_acquire(t1, row_a, held).value();

      const bool granted = locks.try_acquire(t2, row_a, wanted).has_value();

      EXPECT_EQ(granted, compatible_with(held, wanted))
          << to_string(held) << ' ' << to_string(wanted);
    }
  }
}

// 004.038
TEST(PointLocks, the_mode_held_is_what_was_asked_for) {
  const LockManager locks;

  EXPECT_EQ(locks.mode_held(t1, row_a), std::nullopt);
  locks.try_acquire(t1, row_a, shared).value();
  EXPECT_EQ(locks.mode_held(t1, row_a), shared);
  EXPECT_EQ(locks.mode_held(t2, row_a), std::nullopt);
}

// 004.007, 004.021, 004.037, 004.090
TEST(PointLocks, the_last_release_frees_the_lock_and_its_entry) {
  const LockManager locks;
  locks.try_acquire(t1, row_a, exclusive).value();

  locks.release(t1, row_a).value();

  EXPECT_EQ(locks.holder_count(row_a), 0U);
  EXPECT_TRUE(locks.snapshot().locks.empty());
  EXPECT_TRUE(succeeded(locks.try_acquire(t2, row_a, exclusive)));
}

// 004.021, 004.090
TEST(PointLocks, a_second_release_finds_nothing_held) {
  const LockManager locks;
  locks.try_acquire(t1, row_a, exclusive).value();
  locks.release(t1, row_a).value();

  EXPECT_TRUE(refused(locks.release(t1, row_a), Errc::not_held));
}

// 004.021: a release that did not look at the holder would free another's lock.
TEST(PointLocks, a_transaction_that_is_no_holder_cannot_release) {
  const LockManager locks;
  locks.try_acquire(t1, row_a, exclusive).value();
  locks.try_acquire(t2, row_b, shared).value();

  EXPECT_TRUE(refused(locks.release(t2, row_a), Errc::not_held));
  EXPECT_TRUE(refused(locks.release(TxnId{9}, row_a), Errc::not_held));

  EXPECT_EQ(locks.mode_held(t1, row_a), exclusive);
}

// 004.015, 004.089, 004-B13: two callers of one transaction each release once.
TEST(PointLocks, a_lock_acquired_three_times_takes_three_releases) {
  const LockManager locks;
  for (int time = 0; time < 3; ++time) {
    locks.try_acquire(t1, row_a, exclusive).value();
  }

  locks.release(t1, row_a).value();
  locks.release(t1, row_a).value();
  EXPECT_TRUE(refused(locks.try_acquire(t2, row_a, shared), Errc::would_block));
  locks.release(t1, row_a).value();

  EXPECT_EQ(locks.holder_count(row_a), 0U);
}

// 004.015, 004.089
TEST(PointLocks, asking_for_less_than_one_holds_changes_no_mode) {
  const LockManager locks;
  locks.try_acquire(t1, row_a, exclusive).value();

  EXPECT_TRUE(succeeded(locks.try_acquire(t1, row_a, shared)));

  EXPECT_EQ(locks.mode_held(t1, row_a), exclusive);
  EXPECT_EQ(locks.holder_count(row_a), 1U);
}

// 004-B13: the mode must not fall with the first of two releases.
TEST(PointLocks, the_mode_stays_the_join_until_the_last_release) {
  const LockManager locks;
  locks.try_acquire(t1, row_a, shared).value();
  locks.try_acquire(t1, row_a, exclusive).value();

  locks.release(t1, row_a).value();

  EXPECT_EQ(locks.mode_held(t1, row_a), exclusive);
}

// 004.022, 004.082, 004.090
TEST(PointLocks, release_all_counts_points_and_ranges_and_nothing_the_second_time) {
  const LockManager locks;
  for (std::uint64_t number = 0; number < 5; ++number) {
    locks.try_acquire(t1, ResourceId{number}, exclusive).value();
  }
  locks.try_acquire_range(t1, space_a, KeyRange::point(1), shared).value();

  EXPECT_EQ(locks.release_all(t1), 6U);
  EXPECT_EQ(locks.release_all(t1), 0U);
}

// 004.022
TEST(PointLocks, release_all_counts_a_lock_once_however_often_it_was_acquired) {
  const LockManager locks;
  locks.try_acquire(t1, row_a, shared).value();
  locks.try_acquire(t1, row_a, shared).value();
  locks.try_acquire(t1, row_a, exclusive).value();

  EXPECT_EQ(locks.release_all(t1), 1U);
  EXPECT_EQ(locks.holder_count(row_a), 0U);
}

// 004.023, 004.090
TEST(PointLocks, release_all_leaves_others_alone) {
  const LockManager locks;
  locks.try_acquire(t1, row_a, shared).value();
  locks.try_acquire(t2, row_a, shared).value();
  locks.try_acquire(t2, row_b, exclusive).value();

  locks.release_all(t1);

  EXPECT_EQ(locks.mode_held(t2, row_a), shared);
  EXPECT_EQ(locks.mode_held(t2, row_b), exclusive);
}

// 004.008: each part of the table gives up its share.
TEST(PointLocks, release_all_finds_locks_in_every_shard) {
  const LockManager locks = LockManager::with_shards(1024);
  for (std::uint64_t number = 0; number < 10'000; ++number) {
    locks.try_acquire(t1, ResourceId{number}, shared).value();
  }

  EXPECT_EQ(locks.release_all(t1), 10'000U);
  EXPECT_TRUE(locks.snapshot().locks.empty());
}

// 004.084: the simplest way to wait for a contended lock.
TEST(PointLocks, retrying_after_a_conflict_succeeds_once_the_lock_is_free) {
  const LockManager locks;
  locks.try_acquire(t1, row_a, exclusive).value();
  int tries = 0;

  while (!locks.try_acquire(t2, row_a, exclusive)) {
    ++tries;
    locks.release(t1, row_a).value();
  }

  EXPECT_EQ(tries, 1);
  EXPECT_EQ(locks.mode_held(t2, row_a), exclusive);
}

// 004.071, 004-B19: one number is one lock; things that may collide have names.
TEST(PointLocks, two_things_with_one_number_share_a_lock) {
  const LockManager locks;
  const ResourceId user{42};
  const ResourceId order{42};

  locks.try_acquire(t1, user, exclusive).value();

  EXPECT_TRUE(refused(locks.try_acquire(t2, order, exclusive), Errc::would_block));
}

}  // namespace
}  // namespace tenure::test
