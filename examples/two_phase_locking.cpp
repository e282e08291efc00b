// Two-phase locking: a transfer acquires all its locks first and releases all of them at once, at
// commit or abort. No transaction sees the money between two accounts.

#include <map>
#include <string>
#include <string_view>

#include <tenure/tenure.hpp>

#include "check.hpp"

using tenure::Errc;
using tenure::LockManager;
using tenure::LockMode;
using tenure::Result;

namespace {

/// Two accounts whose balances are protected only by the locks on their names.
struct Bank {
  LockManager locks;
  std::map<std::string, int, std::less<>> balances{{"alice", 100}, {"bob", 100}};
};

struct Transfer {
  std::string_view from;
  std::string_view to;
  int amount = 0;
};

Result<void> carry_out(Bank& bank, const Transfer& transfer) {
  const auto txn = bank.locks.begin();

  // Growing phase: acquire every lock, release none.
  if (auto held = txn.lock(transfer.from, LockMode::exclusive); !held) {
    return held;
  }
  if (auto held = txn.lock(transfer.to, LockMode::exclusive); !held) {
    return held;
  }

  auto& from = bank.balances.find(transfer.from)->second;
  if (from < transfer.amount) {
    return tenure::fail(Errc::invalid_argument, "not enough money");  // abort: releases the locks
  }
  from -= transfer.amount;
  bank.balances.find(transfer.to)->second += transfer.amount;

  // Shrinking phase: the end of the transaction releases both at once.
  return {};
}

}  // namespace

int main() {
  Bank bank;

  check(carry_out(bank, {.from = "alice", .to = "bob", .amount = 30}).has_value(),
        "alice pays bob 30: committed");
  check(bank.balances["alice"] == 70 && bank.balances["bob"] == 130, "alice has 70, bob has 130");

  const auto refused = carry_out(bank, {.from = "alice", .to = "bob", .amount = 500});
  check(!refused, "alice pays bob 500: aborted, not enough money");
  check(bank.balances["alice"] == 70 && bank.balances["bob"] == 130, "nothing has moved");
  check(bank.locks.holder_count("alice") == 0 && bank.locks.holder_count("bob") == 0,
        "commit and abort both left no lock behind");

  const auto txn = bank.locks.begin();
  txn.lock("alice", LockMode::shared).or_throw();
  txn.lock("bob", LockMode::exclusive).or_throw();
  check(txn.unlock_all() == 2, "an explicit end returns the number of locks: 2");
}
