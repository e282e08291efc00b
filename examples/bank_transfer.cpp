// A bank: threads transfer money between accounts, and each locks the source account first. No lock
// order is needed: a transfer that closes a wait cycle fails at once and is retried with its
// original age, so it cannot starve. The total amount of money never changes.

#include <array>
#include <atomic>
#include <barrier>
#include <cstddef>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <tenure/tenure.hpp>

#include "check.hpp"

using tenure::Errc;
using tenure::LockManager;
using tenure::LockMode;
using tenure::Result;

namespace {

constexpr int accounts_count = 6;
constexpr int threads_count = 4;
constexpr int transfers_each = 500;
constexpr int money_each = 1000;
constexpr int tries_max = 1000;

struct Transfer {
  std::size_t from;
  std::size_t to;
  int amount;
};

class Bank {
 public:
  Bank() { balances_.fill(money_each); }

  /// Moves the money, or returns an error if the source account has too little. Returns
  /// Errc::deadlock only after `tries_max` attempts in a row were deadlock victims.
  /// `has_first` is called when the first account is locked for the first time.
  [[nodiscard]] Result<bool> transfer(const Transfer& order,
                                      const std::function<void()>& has_first = {}) {
    const auto txn = locks_.begin();
    for (int tries = 1; tries <= tries_max; ++tries) {
      auto locked = txn.lock(name_of(order.from), LockMode::exclusive);
      if (locked && tries == 1 && has_first) {
        has_first();
      }
      if (locked) {
        locked = txn.lock(name_of(order.to), LockMode::exclusive);
      }
      if (locked) {
        return move(order);  // both are unlocked when `txn` ends
      }
      if (locked.error() != Errc::deadlock) {
        return std::unexpected(std::move(locked).error());
      }
      ++gave_way_;
      txn.restart();  // lets go of the first account, keeps the age
    }
    return tenure::fail(Errc::deadlock, "too many deadlocks in a row");
  }

  /// Returns the sum of all accounts at one moment, under shared locks on all of them.
  [[nodiscard]] int total() {
    const auto txn = locks_.begin();
    int sum = 0;
    for (std::size_t account = 0; account < balances_.size(); ++account) {
      txn.lock(name_of(account), LockMode::shared).or_throw();
      sum += balances_[account];
    }
    return sum;
  }

  [[nodiscard]] int gave_way() const { return gave_way_; }
  [[nodiscard]] const LockManager& locks() const { return locks_; }

 private:
  static std::string name_of(std::size_t account) { return "accounts/" + std::to_string(account); }

  /// REQUIRES: both accounts are locked exclusively.
  bool move(const Transfer& order) {
    if (balances_[order.from] < order.amount) {
      return false;
    }
    balances_[order.from] -= order.amount;
    balances_[order.to] += order.amount;
    return true;
  }

  LockManager locks_;
  std::array<int, accounts_count> balances_{};  // each guarded by the lock of its name
  std::atomic<int> gave_way_ = 0;
};

/// Two transfers in opposite directions. Each holds its first account before the other requests it,
/// so they always deadlock.
void two_that_meet(Bank& bank) {
  std::barrier both_have_one(2);
  const auto meet = [&] { both_have_one.arrive_and_wait(); };
  bool there = false;
  bool back = false;
  {
    const std::jthread one(
        [&] { there = bank.transfer({.from = 0, .to = 1, .amount = 100}, meet).or_throw(); });
    const std::jthread other(
        [&] { back = bank.transfer({.from = 1, .to = 0, .amount = 30}, meet).or_throw(); });
  }
  check(there && back, "two transfers in opposite directions are both done");
  check(bank.gave_way() == 1, "one of the two was the deadlock victim and was retried");
}

/// Returns the number of transfers between random accounts that succeeded.
int transfer_randomly(Bank& bank, unsigned seed) {
  std::minstd_rand random(seed);
  int done = 0;
  for (int round = 0; round < transfers_each; ++round) {
    const std::size_t from = random() % accounts_count;
    const std::size_t to = (from + 1 + random() % (accounts_count - 1)) % accounts_count;
    const int amount = static_cast<int>(random() % 50);
    done += bank.transfer({.from = from, .to = to, .amount = amount}).has_value() ? 1 : 0;
  }
  return done;
}

void many(Bank& bank) {
  std::atomic<int> done = 0;
  {
    std::vector<std::jthread> threads;
    threads.reserve(threads_count);
    for (unsigned number = 0; number < threads_count; ++number) {
      threads.emplace_back([&bank, &done, number] { done += transfer_randomly(bank, number + 1); });
    }
  }
  check(done == threads_count * transfers_each, "2000 transfers of four threads are done");
}

}  // namespace

int main() {
  Bank bank;
  two_that_meet(bank);
  many(bank);
  check(bank.total() == accounts_count * money_each, "the total is unchanged: 6000");
  check(bank.locks().waiting_count() == 0, "no lock is held or awaited");
}
