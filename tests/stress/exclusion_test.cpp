#include <array>
#include <atomic>
#include <cstdint>
#include <string>

#include <gtest/gtest.h>

#include <tenure/lock_manager/lock_manager.hpp>

#include "support/model/stress.hpp"

namespace tenure::stress {
namespace {

constexpr std::size_t threads = 8;

// 004.095, 004.094, 004-B1: catches a writer beside another holder, and a lost wake-up.
TEST(StressExclusion, eight_threads_mix_shared_and_exclusive_on_sixteen_resources) {
  const LockManager locks;
  Watchdog watchdog(locks);
  std::array<Shadow, 16> shadows;
  const std::size_t rounds = scaled(20'000);

  in_threads(threads, [&](std::size_t thread) {
    Choices choices(thread);
    const Transaction txn = locks.begin();
    for (std::size_t round = 0; round < rounds; ++round) {
      const std::size_t place = choices.below(shadows.size());
      const ResourceId row{place};
      if (choices.one_in(3)) {
        ASSERT_TRUE(txn.lock(row, LockMode::exclusive).has_value());
        shadows[place].write();
      } else {
        ASSERT_TRUE(txn.lock(row, LockMode::shared).has_value());
        shadows[place].read();
      }
      ASSERT_TRUE(txn.unlock(row).has_value());
      watchdog.tick();
    }
  });

  EXPECT_EQ(violations_in(shadows), 0U);
  EXPECT_TRUE(all_is_free(locks));
}

// 004.095, 004.014: the same by try_acquire, which must neither block nor let two in.
TEST(StressExclusion, try_acquire_never_grants_a_writer_beside_another_holder) {
  const LockManager locks;
  std::array<Shadow, 4> shadows;
  std::atomic<std::uint64_t> written{0};
  const std::size_t rounds = scaled(20'000);

  in_threads(threads, [&](std::size_t thread) {
    Choices choices(thread);
    const TxnId txn{thread + 1};
    for (std::size_t round = 0; round < rounds; ++round) {
      const std::size_t place = choices.below(shadows.size());
      const bool writes = choices.one_in(2);
      const LockMode mode = writes ? LockMode::exclusive : LockMode::shared;
      if (!locks.try_acquire(txn, ResourceId{place}, mode)) {
        continue;
      }
      if (writes) {
        shadows[place].write();
        ++written;
      } else {
        shadows[place].read();
      }
      ASSERT_TRUE(locks.release(txn, ResourceId{place}).has_value());
    }
  });

  std::uint64_t counted = 0;
  for (const Shadow& shadow : shadows) {
    counted += shadow.writes();
  }
  EXPECT_EQ(violations_in(shadows), 0U);
  EXPECT_EQ(counted, written.load());
  EXPECT_TRUE(all_is_free(locks));
}

void write_and_stay_as_reader(const Transaction& txn, Shadow& shadow) {
  const ResourceId row{1};
  ASSERT_TRUE(txn.lock(row, LockMode::exclusive).has_value());
  shadow.write();
  ASSERT_TRUE(txn.downgrade(row, LockMode::shared).has_value());
  shadow.read();
  ASSERT_TRUE(txn.unlock(row).has_value());
}

void read_and_perhaps_write(const Transaction& txn, Shadow& shadow, bool writes) {
  const ResourceId row{1};
  ASSERT_TRUE(txn.lock(row, LockMode::update).has_value());
  shadow.read();
  if (writes) {
    ASSERT_TRUE(txn.lock(row, LockMode::exclusive).has_value());
    shadow.write();
    ASSERT_TRUE(txn.unlock(row).has_value());
  }
  ASSERT_TRUE(txn.unlock(row).has_value());
}

// 004.094, 004-B14, 004-B24: one hot lock goes from its small form to its large one and back, all
// the time. U to X never deadlocks, so every lock() here must succeed.
TEST(StressExclusion, a_hot_resource_survives_upgrades_and_downgrades) {
  const LockManager locks;
  Watchdog watchdog(locks);
  Shadow shadow;
  const std::size_t rounds = scaled(4'000);

  in_threads(threads, [&](std::size_t thread) {
    Choices choices(thread);
    for (std::size_t round = 0; round < rounds; ++round) {
      const Transaction txn = locks.begin();
      switch (choices.below(4)) {
        case 0: write_and_stay_as_reader(txn, shadow); break;
        case 1: read_and_perhaps_write(txn, shadow, true); break;
        case 2: read_and_perhaps_write(txn, shadow, false); break;
        default:
          ASSERT_TRUE(txn.lock(ResourceId{1}, LockMode::shared).has_value());
          shadow.read();  // released by the end of the transaction
      }
      watchdog.tick();
    }
  });

  EXPECT_EQ(shadow.violations(), 0U);
  EXPECT_TRUE(all_is_free(locks));
}

// 004-B19: names come and go; a name that is dropped while another thread interns it again must
// not become two locks.
TEST(StressExclusion, names_are_interned_and_dropped_by_many_threads) {
  const LockManager locks;
  Watchdog watchdog(locks);
  std::array<Shadow, 6> shadows;
  const std::size_t rounds = scaled(10'000);

  in_threads(threads, [&](std::size_t thread) {
    Choices choices(thread);
    for (std::size_t round = 0; round < rounds; ++round) {
      const Transaction txn = locks.begin();
      const std::string own = "own/" + std::to_string(thread) + "/" + std::to_string(round % 50);
      ASSERT_TRUE(txn.try_lock(own, LockMode::exclusive).has_value());
      const std::size_t place = choices.below(shadows.size());
      const bool writes = choices.one_in(2);
      const std::string name = "shared/" + std::to_string(place);
      ASSERT_TRUE(txn.lock(name, writes ? LockMode::exclusive : LockMode::shared).has_value());
      if (writes) {
        shadows[place].write();
      } else {
        shadows[place].read();
      }
      watchdog.tick();
    }
  });

  EXPECT_EQ(violations_in(shadows), 0U);
  EXPECT_TRUE(all_is_free(locks));
}

}  // namespace
}  // namespace tenure::stress
