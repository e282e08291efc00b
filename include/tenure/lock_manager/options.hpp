#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stop_token>

#include <tenure/ids.hpp>
#include <tenure/lock_manager/deadlock.hpp>
#include <tenure/timeout.hpp>

namespace tenure {

/// When the manager searches for deadlocks.
enum class Detection : std::uint8_t {
  at_wait,    ///< whenever a wait begins; costs a search from the new waiter
  on_demand,  ///< only in LockManager::find_deadlock(), called periodically
};

/// How a LockManager behaves. Set what differs from the default:
///   LockManager locks({.victim = VictimPolicy::fewest_locks});
struct LockManagerOptions {
  /// Number of shards of the lock table, rounded up to a power of two. More shards reduce
  /// contention between threads and cost 64 bytes each. Default: 128 per CPU, 256 to 4,096.
  std::optional<std::size_t> shards = std::nullopt;

  /// When to search for deadlocks. On demand costs nothing per wait and finds them later.
  Detection detection = Detection::at_wait;

  /// Rule that selects the victim, unless the wait that closes the cycle names another one.
  VictimPolicy victim = VictimPolicy::youngest;

  /// Custom rule; takes precedence over `victim` if set.
  ChooseVictim choose_victim = {};

  /// Number of resolved deadlocks that recent_deadlocks() keeps.
  std::size_t deadlocks_kept = 64;

  /// Limits. A request beyond them returns Errc::resource_exhausted and changes nothing.
  std::size_t waiters_per_lock_max = 10'000;
  std::size_t locks_per_transaction_max = 16'000'000;
};

/// Deadline and cancellation of one wait.
struct WaitOptions {
  /// Deadline: Errc::timed_out after it. Default: wait forever.
  std::optional<std::chrono::steady_clock::time_point> deadline = std::nullopt;

  /// Stop token: Errc::cancelled when it is triggered.
  std::stop_token cancel = {};

  /// Rule that selects the victim if this wait closes a cycle. Default: LockManagerOptions::victim.
  std::optional<VictimPolicy> victim = std::nullopt;
};

/// WaitOptions with a timeout: `txn.lock(row, LockMode::exclusive, within(50ms))`
template <class Rep, class Period>
[[nodiscard]] WaitOptions within(const std::chrono::duration<Rep, Period>& timeout) {
  return {.deadline = detail::steady_deadline(detail::to_nanoseconds(timeout))};
}

/// How one transaction behaves.
struct TransactionOptions {
  /// Id chosen by the caller. Default: a new one, increasing from 2^63.
  std::optional<TxnId> id = std::nullopt;

  /// Age for the selection of victims; smaller is older. Default: the id. A transaction that
  /// retries the work of a victim should keep the age of the first attempt: as the youngest again,
  /// it could starve. Transaction::restart() keeps it.
  std::optional<std::uint64_t> age = std::nullopt;

  /// Priority for VictimPolicy::lowest_priority; the smallest is the victim.
  int priority = 0;
};

}  // namespace tenure
