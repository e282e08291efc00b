#include <array>
#include <atomic>
#include <cstdint>
#include <thread>

#include <gtest/gtest.h>

#include <tenure/lock_manager/lock_manager.hpp>

#include "support/model/stress.hpp"

namespace tenure::stress {
namespace {

Target draw_target(Choices& choices) {
  const std::size_t place = choices.below(6);
  if (place < 2) {
    return ResourceId{place};
  }
  if (place < 4) {
    return place == 2 ? "two" : "three";
  }
  return KeysOf{.space = ResourceId{9}, .range = KeyRange::of(place, 5).value()};
}

bool is_expected(const Result<void>& locked) {
  return locked || locked.error() == Errc::cancelled || locked.error() == Errc::deadlock;
}

// 004-B11, 004.002: a lock acquired between the parts of a release_all would stay for ever, and a
// thread of the transaction that is not woken would wait for ever.
TEST(StressSharedTransaction, release_all_races_with_locks_of_the_same_transaction) {
  const LockManager locks;
  Watchdog watchdog(locks);
  const std::array<Transaction, 2> txns{locks.begin(), locks.begin()};
  std::atomic<std::uint64_t> unexpected{0};
  const std::size_t rounds = scaled(3'000);

  in_threads(8, [&](std::size_t thread) {
    Choices choices(thread);
    const Transaction& txn = txns[thread % 2];
    for (std::size_t round = 0; round < rounds; ++round) {
      const Target target = draw_target(choices);
      const auto mode = choices.one_in(2) ? LockMode::exclusive : LockMode::shared;
      const auto locked = txn.lock(target, mode);
      unexpected += is_expected(locked) ? 0U : 1U;
      yield_sometimes();
      if (!locked || choices.one_in(8)) {
        txn.unlock_all();
      } else {
        (void)txn.unlock(target);  // another thread may have released everything before
      }
      watchdog.tick();
    }
    txn.unlock_all();
  });

  EXPECT_EQ(unexpected.load(), 0U);
  EXPECT_EQ(txns[0].lock_count() + txns[1].lock_count(), 0U);
  EXPECT_TRUE(all_is_free(locks));
}

// 004-B11, 004-B13: several threads count one lock; it protects until the last of them is done.
TEST(StressSharedTransaction, counted_holds_of_several_threads_protect_until_the_last) {
  const LockManager locks;
  Watchdog watchdog(locks);
  const Transaction ours = locks.begin();
  std::atomic<int> inside{0};
  std::atomic<std::uint64_t> violations{0};
  const std::size_t rounds = scaled(5'000);

  in_threads(6, [&](std::size_t thread) {
    const ResourceId row{1};
    for (std::size_t round = 0; round < rounds; ++round) {
      if (thread < 4) {
        ASSERT_TRUE(ours.lock(row, LockMode::exclusive).has_value());
        inside.fetch_add(1);
        yield_sometimes();
        inside.fetch_sub(1);
        ASSERT_TRUE(ours.unlock(row).has_value());
      } else if (const Transaction other = locks.begin(); other.try_lock(row, LockMode::shared)) {
        yield_sometimes();
        violations += inside.load() == 0 ? 0U : 1U;
      }
      watchdog.tick();
    }
  });

  EXPECT_EQ(violations.load(), 0U);
  EXPECT_EQ(ours.lock_count(), 0U);
  EXPECT_TRUE(all_is_free(locks));
}

// 004-B11: by id, where the transaction exists only while it holds or waits, and is made and
// forgotten all the time.
TEST(StressSharedTransaction, many_threads_may_use_the_same_transaction_id) {
  const LockManager locks;
  Watchdog watchdog(locks);
  std::atomic<std::uint64_t> unexpected{0};
  const std::size_t rounds = scaled(3'000);

  in_threads(8, [&](std::size_t thread) {
    Choices choices(thread);
    const TxnId txn{1 + thread % 3};
    for (std::size_t round = 0; round < rounds; ++round) {
      const Target target = draw_target(choices);
      const auto mode = choices.one_in(2) ? LockMode::exclusive : LockMode::shared;
      const auto locked = locks.acquire(txn, target, mode);
      unexpected += is_expected(locked) ? 0U : 1U;
      yield_sometimes();
      if (!locked || choices.one_in(8)) {
        locks.release_all(txn);
      } else {
        (void)locks.release(txn, target);
      }
      watchdog.tick();
    }
    locks.release_all(txn);
  });

  EXPECT_EQ(unexpected.load(), 0U);
  EXPECT_TRUE(all_is_free(locks));
}

}  // namespace
}  // namespace tenure::stress
