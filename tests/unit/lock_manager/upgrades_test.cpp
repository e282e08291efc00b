#include <cstddef>
#include <optional>

#include <gtest/gtest.h>

#include <tenure/lock_manager/lock_manager.hpp>

#include "support/lock_manager/locks.hpp"

namespace tenure::test {
namespace {

// 004.016, 004.018, 004.089
TEST(Upgrades, the_only_reader_becomes_the_writer) {
  const LockManager locks;
  locks.try_acquire(t1, row_a, shared).value();

  EXPECT_TRUE(succeeded(locks.try_acquire(t1, row_a, exclusive)));

  EXPECT_EQ(locks.mode_held(t1, row_a), exclusive);
  EXPECT_EQ(locks.holder_count(row_a), 1U);
}

// 004.019, 004.087
TEST(Upgrades, a_reader_that_intends_to_write_below_holds_six) {
  const LockManager locks;
  locks.try_acquire(t1, row_a, shared).value();

  locks.try_acquire(t1, row_a, intention_exclusive).value();

  EXPECT_EQ(locks.mode_held(t1, row_a), shared_intention_exclusive);
}

// 004.020, 004.089
TEST(Upgrades, another_reader_blocks_the_upgrade_and_nothing_changes) {
  const LockManager locks;
  locks.try_acquire(t1, row_a, shared).value();
  locks.try_acquire(t2, row_a, shared).value();

  EXPECT_TRUE(refused(locks.try_acquire(t1, row_a, exclusive), Errc::would_block));

  EXPECT_EQ(locks.mode_held(t1, row_a), shared);
  locks.release(t1, row_a).value();
  EXPECT_EQ(locks.mode_held(t1, row_a), std::nullopt);
}

// 004.087
TEST(Upgrades, is_becomes_x_when_alone) {
  const LockManager locks;
  locks.try_acquire(t1, row_a, intention_shared).value();

  EXPECT_TRUE(succeeded(locks.try_acquire(t1, row_a, exclusive)));
}

// 004.087
TEST(Upgrades, another_reader_blocks_six) {
  const LockManager locks;
  locks.try_acquire(t1, row_a, shared).value();
  locks.try_acquire(t2, row_a, shared).value();

  EXPECT_TRUE(refused(locks.try_acquire(t1, row_a, intention_exclusive), Errc::would_block));
}

// 004.016, 004-B24: decided by the join of what is held and what is wanted, for all six modes.
TEST(Upgrades, an_upgrade_is_granted_exactly_if_its_join_goes_with_the_other_holder) {
  for (const LockMode held : all_lock_modes) {
    for (const LockMode wanted : all_lock_modes) {
      for (const LockMode other : all_lock_modes) {
        if (!compatible_with(held, other)) {
          continue;
        }
        const LockManager locks;
        locks.try_acquire(t1, row_a, held).value();
        locks.try_acquire(t2, row_a, other).value();

        const bool granted = locks.try_acquire(t1, row_a, wanted).has_value();

        const LockMode joined = join(held, wanted);
        ASSERT_EQ(granted, compatible_with(joined, other))
            << to_string(held) << " + " << to_string(wanted) << " beside " << to_string(other);
        ASSERT_EQ(locks.mode_held(t1, row_a), granted ? joined : held);
      }
    }
  }
}

// 004-B24: the queue shows the joined mode; the wanted one alone would not cover what is held.
TEST(Upgrades, a_waiting_upgrade_waits_for_the_joined_mode) {
  const LockManager locks;
  locks.try_acquire(t1, row_a, shared).value();
  locks.try_acquire(t2, row_a, shared).value();

  ASSERT_TRUE(locks.request(t1, row_a, intention_exclusive).is_waiting());

  const LockSnapshot seen = locks.snapshot();
  ASSERT_EQ(seen.locks.size(), 1U);
  ASSERT_EQ(seen.locks[0].waiters.size(), 1U);
  EXPECT_EQ(seen.locks[0].waiters[0].mode, shared_intention_exclusive);
  EXPECT_TRUE(seen.locks[0].waiters[0].upgrade);
}

// 004-B2: with the upgrade behind the writer both would wait for ever.
TEST(Upgrades, an_upgrade_precedes_requests_of_non_holders) {
  const LockManager locks;
  locks.try_acquire(t1, row_a, shared).value();
  locks.try_acquire(t2, row_a, shared).value();
  ASSERT_TRUE(locks.request(t3, row_a, exclusive).is_waiting());
  ASSERT_TRUE(locks.request(t1, row_a, exclusive).is_waiting());

  locks.release(t2, row_a).value();

  EXPECT_EQ(locks.mode_held(t1, row_a), exclusive);
  EXPECT_EQ(locks.mode_held(t3, row_a), std::nullopt);
}

// 004-B2: a waiting writer bars newcomers, never what goes before it in the queue.
TEST(Upgrades, a_waiting_writer_does_not_bar_an_upgrade) {
  const LockManager locks;
  locks.try_acquire(t1, row_a, intention_shared).value();
  locks.try_acquire(t2, row_a, intention_shared).value();
  ASSERT_TRUE(locks.request(t3, row_a, exclusive).is_waiting());

  EXPECT_TRUE(succeeded(locks.try_acquire(t1, row_a, shared)));
}

// 004-B2: t2's IX is compatible with every holder, but would starve t1, which waits ahead of it.
TEST(Upgrades, an_upgrade_does_not_overtake_an_upgrade_it_conflicts_with) {
  const LockManager locks;
  locks.try_acquire(t1, row_a, intention_exclusive).value();
  locks.try_acquire(t2, row_a, intention_shared).value();
  locks.try_acquire(t3, row_a, intention_exclusive).value();
  ASSERT_TRUE(locks.request(t1, row_a, shared).is_waiting());

  EXPECT_TRUE(refused(locks.try_acquire(t2, row_a, intention_exclusive), Errc::would_block));
  ASSERT_TRUE(locks.request(t2, row_a, intention_exclusive).is_waiting());
  locks.release(t3, row_a).value();

  EXPECT_EQ(locks.mode_held(t1, row_a), shared_intention_exclusive);
  EXPECT_EQ(locks.mode_held(t2, row_a), intention_shared);
}

// Readers come and go beside U; a second updater waits instead of dooming both.
TEST(Upgrades, an_update_lock_admits_readers_and_no_second_updater) {
  const LockManager locks;
  locks.try_acquire(t1, row_a, update).value();

  EXPECT_TRUE(succeeded(locks.try_acquire(t2, row_a, shared)));
  EXPECT_TRUE(refused(locks.try_acquire(t3, row_a, update), Errc::would_block));
}

// The purpose of U: read, then write, without the deadlock of S to X.
TEST(Upgrades, two_updaters_never_deadlock) {
  const LockManager locks;
  locks.try_acquire(t1, row_a, update).value();
  ASSERT_TRUE(locks.request(t2, row_a, update).is_waiting());

  EXPECT_TRUE(locks.request(t1, row_a, exclusive).is_granted());
  locks.release_all(t1);
  EXPECT_TRUE(locks.request(t2, row_a, update).is_granted());
  EXPECT_TRUE(locks.request(t2, row_a, exclusive).is_granted());

  EXPECT_TRUE(locks.recent_deadlocks().empty());
}

// 004-B13: an upgrade is one more acquisition, a refused one is none.
TEST(Upgrades, a_granted_upgrade_counts_and_a_refused_one_does_not) {
  const LockManager locks;
  locks.try_acquire(t1, row_a, shared).value();
  locks.try_acquire(t2, row_a, shared).value();
  ASSERT_FALSE(locks.try_acquire(t1, row_a, exclusive));
  locks.release(t2, row_a).value();
  locks.try_acquire(t1, row_a, exclusive).value();

  locks.release(t1, row_a).value();
  EXPECT_EQ(locks.mode_held(t1, row_a), exclusive);
  locks.release(t1, row_a).value();

  EXPECT_EQ(locks.holder_count(row_a), 0U);
}

// 004-B14
TEST(Downgrades, a_writer_that_becomes_a_reader_unblocks_readers) {
  const LockManager locks;
  locks.try_acquire(t1, row_a, exclusive).value();
  ASSERT_TRUE(locks.request(t2, row_a, shared).is_waiting());

  EXPECT_TRUE(succeeded(locks.downgrade(t1, row_a, shared)));

  EXPECT_EQ(locks.mode_held(t1, row_a), shared);
  EXPECT_EQ(locks.mode_held(t2, row_a), shared);
}

// 004-B14
TEST(Downgrades, a_hold_can_be_downgraded_to_every_mode_it_covers) {
  for (const LockMode held : all_lock_modes) {
    for (const LockMode wanted : all_lock_modes) {
      const LockManager locks;
      locks.try_acquire(t1, row_a, held).value();

      const auto answer = locks.downgrade(t1, row_a, wanted);

      if (covers(held, wanted)) {
        EXPECT_TRUE(succeeded(answer));
        EXPECT_EQ(locks.mode_held(t1, row_a), wanted);
      } else {
        EXPECT_TRUE(refused(answer, Errc::invalid_argument));
        EXPECT_EQ(locks.mode_held(t1, row_a), held);
      }
    }
  }
}

// 004-B14
TEST(Downgrades, a_lock_that_is_not_held_cannot_be_downgraded) {
  const LockManager locks;
  locks.try_acquire(t2, row_a, exclusive).value();

  EXPECT_TRUE(refused(locks.downgrade(t1, row_a, shared), Errc::not_held));
  EXPECT_TRUE(refused(locks.downgrade(t1, keys(space_a, 1, 2), shared), Errc::not_held));
}

// 004-B13, 004-B14
TEST(Downgrades, the_count_survives_a_downgrade) {
  const LockManager locks;
  locks.try_acquire(t1, row_a, exclusive).value();
  locks.try_acquire(t1, row_a, exclusive).value();

  locks.downgrade(t1, row_a, intention_shared).value();

  locks.release(t1, row_a).value();
  EXPECT_EQ(locks.mode_held(t1, row_a), intention_shared);
  locks.release(t1, row_a).value();
  EXPECT_EQ(locks.mode_held(t1, row_a), std::nullopt);
}

// 004-B14: only waiters that can proceed are granted; the order of the queue does not change.
TEST(Downgrades, a_downgrade_grants_no_waiter_out_of_turn) {
  const LockManager locks;
  locks.try_acquire(t1, row_a, exclusive).value();
  ASSERT_TRUE(locks.request(t2, row_a, exclusive).is_waiting());
  ASSERT_TRUE(locks.request(t3, row_a, shared).is_waiting());

  locks.downgrade(t1, row_a, shared).value();

  EXPECT_EQ(locks.mode_held(t3, row_a), std::nullopt);
  EXPECT_EQ(locks.waiting_count(), 2U);
}

}  // namespace
}  // namespace tenure::test
