#include <algorithm>
#include <array>
#include <cstdint>
#include <string>

#include <gtest/gtest.h>

#include <tenure/lock_manager/lock_manager.hpp>

#include "support/model/stress.hpp"

namespace tenure::stress {
namespace {

constexpr std::size_t threads = 8;
constexpr std::size_t keys = 24;
using Shadows = std::array<Shadow, keys>;

struct Ends {
  std::size_t first;
  std::size_t last;
};

Ends draw(Choices& choices) {
  const std::size_t one = choices.below(keys);
  return {.first = one, .last = std::min(keys - 1, one + choices.below(5))};
}

KeysOf numbered(Ends ends) {
  return {.space = ResourceId{3}, .range = KeyRange::of(ends.first, ends.last).value()};
}

BytesOf lettered(Ends ends) {
  const auto key = [](std::size_t place) {
    return std::string(1, static_cast<char>('a' + static_cast<int>(place)));
  };
  return {.space = ResourceId{3}, .range = BytesRange::of(key(ends.first), key(ends.last)).value()};
}

void use(Shadows& shadows, Ends ends, bool writes) {
  for (std::size_t key = ends.first; key <= ends.last; ++key) {
    writes ? shadows[key].enter_writing() : shadows[key].enter_reading();
  }
  for (std::size_t key = ends.first; key <= ends.last; ++key) {
    writes ? shadows[key].leave_writing() : shadows[key].leave_reading();
  }
}

/// One range at a time: no deadlock is possible, so every lock() must succeed.
template <class ToTarget>
void lock_one_range_at_a_time(std::size_t rounds, const ToTarget& to_target) {
  const LockManager locks;
  Watchdog watchdog(locks);
  Shadows shadows;

  in_threads(threads, [&](std::size_t thread) {
    Choices choices(thread);
    const Transaction txn = locks.begin();
    for (std::size_t round = 0; round < rounds; ++round) {
      const Ends ends = draw(choices);
      const bool writes = choices.one_in(2);
      const auto mode = writes ? LockMode::exclusive : LockMode::shared;
      ASSERT_TRUE(txn.lock(to_target(ends), mode).has_value());
      use(shadows, ends, writes);
      ASSERT_TRUE(txn.unlock(to_target(ends)).has_value());
      watchdog.tick();
    }
  });

  EXPECT_EQ(violations_in(shadows), 0U);
  EXPECT_EQ(locks.range_count(ResourceId{3}), 0U);
  EXPECT_TRUE(all_is_free(locks));
}

// 004.094: overlapping ranges of keys are exclusive.
TEST(StressRanges, overlapping_ranges_of_keys_exclude_each_other) {
  lock_one_range_at_a_time(scaled(4'000), numbered);
}

// 004.094, 004-B20
TEST(StressRanges, overlapping_ranges_of_bytes_exclude_each_other) {
  lock_one_range_at_a_time(scaled(4'000), lettered);
}

bool lock_both(const Transaction& txn, Ends one, Ends other) {
  if (!txn.lock(numbered(one), LockMode::exclusive)) {
    return false;
  }
  yield_sometimes();
  return txn.lock(numbered(other), LockMode::exclusive).has_value();
}

// 004.095, 004-B3: two ranges in any order; an undetected cycle of range waits hangs here.
TEST(StressRanges, a_deadlock_storm_of_ranges_always_makes_progress) {
  const LockManager locks;
  Watchdog watchdog(locks);
  Shadows shadows;
  const std::size_t commits = scaled(400);

  in_threads(threads, [&](std::size_t thread) {
    Choices choices(thread);
    for (std::size_t commit = 0; commit < commits; ++commit) {
      const Transaction txn = locks.begin();
      const Ends one = draw(choices);
      const Ends other = draw(choices);
      while (!lock_both(txn, one, other)) {
        txn.restart();
      }
      use(shadows, one, true);
      use(shadows, other, true);
      watchdog.tick();
    }
  });

  EXPECT_EQ(violations_in(shadows), 0U);
  EXPECT_FALSE(locks.recent_deadlocks().empty());  // else it was no storm
  EXPECT_TRUE(all_is_free(locks));
}

}  // namespace
}  // namespace tenure::stress
