#include <array>
#include <atomic>
#include <cstdint>
#include <numeric>
#include <string>

#include <gtest/gtest.h>

#include <tenure/lock_manager/lock_manager.hpp>

#include "support/model/stress.hpp"

namespace tenure::stress {
namespace {

constexpr std::int64_t opening_balance = 100;

/// A table of accounts: plain numbers, guarded by the locks alone.
using Accounts = std::array<std::int64_t, 12>;

bool move_money(const Transaction& txn, Accounts& accounts, std::size_t from, std::size_t into) {
  const std::string giver = std::to_string(from);
  const std::string taker = std::to_string(into);
  if (!txn.lock_path({"db", "accounts", giver}, LockMode::exclusive) ||
      !txn.lock_path({"db", "accounts", taker}, LockMode::exclusive)) {
    return false;
  }
  accounts[from] -= 1;
  yield_sometimes();
  accounts[into] += 1;
  return true;
}

bool sum_up(const Transaction& txn, const Accounts& accounts, std::int64_t& sum) {
  if (!txn.lock_path({"db", "accounts"}, LockMode::shared)) {
    return false;
  }
  sum = std::accumulate(accounts.begin(), accounts.end(), std::int64_t{0});
  return true;
}

// 004.078 to 004.082, 004.094, 004-B22: S on the table against IX on it and X on rows: a sum that
// is off, or a race that the thread sanitizer sees, is a broken hierarchy.
TEST(StressHierarchy, a_table_reader_never_sees_half_a_transfer) {
  const LockManager locks;
  Watchdog watchdog(locks);
  Accounts accounts;
  accounts.fill(opening_balance);
  std::atomic<std::uint64_t> wrong_sums{0};
  const std::size_t rounds = scaled(1'000);

  in_threads(8, [&](std::size_t thread) {
    Choices choices(thread);
    for (std::size_t round = 0; round < rounds; ++round) {
      const Transaction txn = locks.begin();
      if (thread < 6) {
        const std::size_t from = choices.below(accounts.size());
        const std::size_t into = choices.below(accounts.size());
        while (!move_money(txn, accounts, from, into)) {
          txn.restart();
        }
      } else {
        std::int64_t sum = 0;
        while (!sum_up(txn, accounts, sum)) {
          txn.restart();
        }
        wrong_sums += sum == opening_balance * std::ssize(accounts) ? 0U : 1U;
      }
      watchdog.tick();
    }
  });

  EXPECT_EQ(wrong_sums.load(), 0U);
  EXPECT_TRUE(all_is_free(locks));
}

}  // namespace
}  // namespace tenure::stress
