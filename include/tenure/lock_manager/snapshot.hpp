#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <tenure/ids.hpp>
#include <tenure/lock_mode.hpp>

namespace tenure {

/// Transaction that holds a lock.
struct HolderView {
  TxnId txn;                ///< Id of the transaction.
  LockMode mode;            ///< Join of the modes it acquired.
  std::uint32_t count = 1;  ///< Number of acquisitions that are not yet released.

  /// Time since the transaction acquired its first lock: an upper bound for this one, because
  /// reading a clock at every grant would cost more than the grant.
  std::chrono::milliseconds transaction_for = {};
};

/// Transaction that waits for a lock.
struct WaiterView {
  TxnId txn;             ///< Id of the transaction.
  LockMode mode;         ///< Mode after the grant: join of held and requested mode.
  bool upgrade = false;  ///< Whether it holds the lock already, in a weaker mode.
  std::chrono::microseconds waited = {};  ///< Time in the wait queue so far.
};

/// Lock with holders or waiters.
struct LockView {
  std::string target;                    ///< Target in the notation of to_string(Target).
  std::vector<HolderView> holders = {};  ///< Transactions that hold it.
  std::vector<WaiterView> waiters = {};  ///< Wait queue, in order.
};

/// Holders and waiters of all locks, for diagnostics. Each lock is consistent by itself; two locks
/// may have been read at different moments.
struct LockSnapshot {
  std::vector<LockView> locks;  ///< Locks, sorted by target.
};

/// Human-readable table with one line per holder and waiter.
[[nodiscard]] std::string to_string(const LockSnapshot& snapshot);

}  // namespace tenure
