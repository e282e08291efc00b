#include <array>
#include <atomic>
#include <barrier>
#include <cstdint>
#include <optional>
#include <span>
#include <thread>

#include <gtest/gtest.h>

#include <tenure/lock_manager/lock_manager.hpp>

#include "support/model/stress.hpp"

namespace tenure::stress {
namespace {

constexpr std::size_t threads = 8;
using Rows = std::array<std::uint64_t, 6>;
using Shadows = std::array<Shadow, 6>;

void write_all(std::span<const std::uint64_t> rows, Shadows& shadows) {
  for (const std::uint64_t row : rows) {
    shadows[row].enter_writing();
  }
  for (const std::uint64_t row : rows) {
    shadows[row].leave_writing();
  }
}

/// True if all were locked; false if we were the victim of a deadlock.
bool lock_all(const Transaction& txn, std::span<const std::uint64_t> rows) {
  for (const std::uint64_t row : rows) {
    const auto locked = txn.lock(ResourceId{row}, LockMode::exclusive);
    if (!locked) {
      EXPECT_EQ(locked.error().code, Errc::deadlock);
      return false;
    }
    yield_sometimes();
  }
  return true;
}

// 004.095, 004-B7, 004-B8, 004-B15: catches a cycle that stays, a second victim, a victim that
// never ends, and a victim that still writes.
TEST(StressDeadlocks, a_storm_of_blocking_transactions_always_makes_progress) {
  const LockManager locks;
  Watchdog watchdog(locks);
  Shadows shadows;
  const std::size_t commits = scaled(100);

  in_threads(threads, [&](std::size_t thread) {
    Choices choices(thread);
    Rows rows{0, 1, 2, 3, 4, 5};
    for (std::size_t commit = 0; commit < commits; ++commit) {
      const Transaction txn = locks.begin();
      choices.shuffle(rows);
      const auto wanted = std::span(rows).first(2 + choices.below(4));
      while (!lock_all(txn, wanted)) {
        ASSERT_TRUE(txn.deadlock().has_value());
        txn.restart();
      }
      write_all(wanted, shadows);
      txn.unlock_all();
      watchdog.tick();
    }
  });

  EXPECT_EQ(violations_in(shadows), 0U);
  EXPECT_FALSE(locks.recent_deadlocks().empty());  // else it was no storm
  EXPECT_TRUE(all_is_free(locks));
}

/// Document 004's loop: asks until granted; false if the answer was to give way.
bool acquire_or_abort(const LockManager& locks, TxnId txn, ResourceId row) {
  for (;;) {
    const RequestResult answer = locks.request(txn, row, LockMode::exclusive);
    if (answer.is_granted()) {
      yield_sometimes();
      return true;
    }
    if (const Deadlock* deadlock = answer.deadlock(); deadlock && deadlock->victim == txn) {
      locks.release_all(txn);
      return false;
    }
    std::this_thread::yield();
  }
}

bool acquire_all_or_abort(const LockManager& locks, TxnId txn,
                          std::span<const std::uint64_t> rows) {
  return std::ranges::all_of(
      rows, [&](std::uint64_t row) { return acquire_or_abort(locks, txn, ResourceId{row}); });
}

// 004.084, 004.095
TEST(StressDeadlocks, a_storm_of_acquire_or_abort_always_makes_progress) {
  const LockManager locks;
  Watchdog watchdog(locks);
  Shadows shadows;
  const std::size_t commits = scaled(100);

  in_threads(threads, [&](std::size_t thread) {
    Choices choices(thread);
    Rows rows{0, 1, 2, 3, 4, 5};
    for (std::size_t commit = 0; commit < commits; ++commit) {
      const TxnId txn{1 + commit * threads + thread};
      choices.shuffle(rows);
      const auto wanted = std::span(rows).first(2 + choices.below(4));
      while (!acquire_all_or_abort(locks, txn, wanted)) {
        std::this_thread::yield();
      }
      write_all(wanted, shadows);
      ASSERT_EQ(locks.release_all(txn), wanted.size());
      watchdog.tick();
    }
  });

  EXPECT_EQ(violations_in(shadows), 0U);
  EXPECT_FALSE(locks.recent_deadlocks().empty());  // else it was no storm
  EXPECT_TRUE(all_is_free(locks));
}

/// Reads a row, then writes it: two of these at once always deadlock.
bool read_then_write(const Transaction& txn, ResourceId row) {
  if (!txn.lock(row, LockMode::shared)) {
    return false;
  }
  yield_sometimes();
  return txn.lock(row, LockMode::exclusive).has_value();
}

// 004.095, 004-B2: upgrades from S that meet; each time all but one must give way.
TEST(StressDeadlocks, a_storm_of_upgrades_always_makes_progress) {
  const LockManager locks;
  Watchdog watchdog(locks);
  std::array<Shadow, 2> shadows;
  const std::size_t commits = scaled(500);

  in_threads(threads, [&](std::size_t thread) {
    Choices choices(thread);
    for (std::size_t commit = 0; commit < commits; ++commit) {
      const Transaction txn = locks.begin();
      const std::size_t place = choices.below(shadows.size());
      while (!read_then_write(txn, ResourceId{place})) {
        txn.restart();
      }
      shadows[place].write();
      watchdog.tick();
    }
  });

  EXPECT_EQ(violations_in(shadows), 0U);
  EXPECT_FALSE(locks.recent_deadlocks().empty());  // else it was no storm
  EXPECT_TRUE(all_is_free(locks));
}

// 004.036: a wait does not search for deadlocks; one thread searches at intervals.
TEST(StressDeadlocks, find_deadlock_resolves_a_storm_on_demand) {
  const LockManager locks({.detection = Detection::on_demand});
  Watchdog watchdog(locks);
  Shadows shadows;
  const std::size_t commits = scaled(100);
  std::jthread detector([&locks](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      (void)locks.find_deadlock();
      std::this_thread::yield();
    }
  });

  in_threads(threads, [&](std::size_t thread) {
    Choices choices(thread);
    Rows rows{0, 1, 2, 3, 4, 5};
    for (std::size_t commit = 0; commit < commits; ++commit) {
      const Transaction txn = locks.begin();
      choices.shuffle(rows);
      const auto wanted = std::span(rows).first(3);
      while (!lock_all(txn, wanted)) {
        txn.restart();
      }
      write_all(wanted, shadows);
      watchdog.tick();
    }
  });

  EXPECT_EQ(violations_in(shadows), 0U);
  EXPECT_FALSE(locks.recent_deadlocks().empty());  // else it was no storm
  EXPECT_TRUE(all_is_free(locks));
}

// 004.094, 004-B8, 004-B17: both threads close the cycle at the same moment. Catches no victim, and
// two.
TEST(StressDeadlocks, two_transactions_that_deadlock_have_exactly_one_victim) {
  const LockManager locks;
  Watchdog watchdog(locks);
  const std::size_t rounds = scaled(5'000);
  std::array<std::atomic<bool>, 2> gave_way{};
  std::atomic<std::uint64_t> wrong_rounds{0};
  std::barrier meet(2);

  in_threads(2, [&](std::size_t thread) {
    const Transaction txn = locks.begin({.id = TxnId{thread + 1}});
    for (std::size_t round = 0; round < rounds; ++round) {
      EXPECT_TRUE(txn.lock(ResourceId{thread}, LockMode::exclusive).has_value());
      meet.arrive_and_wait();
      const auto second = txn.lock(ResourceId{1 - thread}, LockMode::exclusive);
      gave_way[thread] = !second && second.error().code == Errc::deadlock;
      EXPECT_EQ(txn.unlock_all(), second ? 2U : 1U);
      meet.arrive_and_wait();
      const bool lawful = gave_way[1] && !gave_way[0];  // the youngest, and only him
      wrong_rounds += thread == 0 && !lawful ? 1 : 0;
      meet.arrive_and_wait();
      watchdog.tick();
    }
  });

  EXPECT_EQ(wrong_rounds.load(), 0U);
  EXPECT_TRUE(all_is_free(locks));
}

// 004.094: three in a ring, so that the cycle is closed by any of three waits.
TEST(StressDeadlocks, three_transactions_in_a_ring_have_exactly_one_victim) {
  const LockManager locks;
  Watchdog watchdog(locks);
  const std::size_t rounds = scaled(2'000);
  std::atomic<std::uint64_t> victims{0};
  std::barrier meet(3);

  in_threads(3, [&](std::size_t thread) {
    const Transaction txn = locks.begin({.id = TxnId{thread + 1}});
    for (std::size_t round = 0; round < rounds; ++round) {
      EXPECT_TRUE(txn.lock(ResourceId{thread}, LockMode::exclusive).has_value());
      meet.arrive_and_wait();
      if (!txn.lock(ResourceId{(thread + 1) % 3}, LockMode::exclusive)) {
        ++victims;
      }
      txn.unlock_all();
      meet.arrive_and_wait();
      watchdog.tick();
    }
  });

  EXPECT_EQ(victims.load(), rounds);
  EXPECT_TRUE(all_is_free(locks));
}

}  // namespace
}  // namespace tenure::stress
