#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <tenure/ids.hpp>
#include <tenure/lock_mode.hpp>

namespace tenure {

/// One transaction that holds a lock.
struct HolderView {
  TxnId txn;                ///< Which one.
  LockMode mode;            ///< The join of all it asked for.
  std::uint32_t count = 1;  ///< How often it was acquired and not yet released.

  /// How long the holder's transaction has been holding locks: an upper bound for this one, since
  /// reading a clock at every grant would cost more than the grant.
  std::chrono::milliseconds transaction_for = {};
};

/// One transaction that waits for a lock, in the order of the queue.
struct WaiterView {
  TxnId txn;      ///< Which one.
  LockMode mode;  ///< What it will hold once granted: what it has joined with what it asked for.
  bool upgrade = false;                   ///< Holds the lock already, in a weaker mode.
  std::chrono::microseconds waited = {};  ///< Up to now.
};

/// One lock that somebody holds or waits for.
struct LockView {
  std::string target;                    ///< As to_string(Target) writes it.
  std::vector<HolderView> holders = {};  ///< Who holds it.
  std::vector<WaiterView> waiters = {};  ///< Who waits, in the order of the queue.
};

/// Who holds and who waits, for people. Each lock is shown as it was at one moment; two locks may
/// have been looked at a moment apart.
struct LockSnapshot {
  std::vector<LockView> locks;  ///< Sorted by target.
};

/// A table, one line for each holder and waiter.
[[nodiscard]] std::string to_string(const LockSnapshot& snapshot);

}  // namespace tenure
