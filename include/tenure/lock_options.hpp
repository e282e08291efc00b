#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stop_token>

#include <tenure/deadlock.hpp>
#include <tenure/ids.hpp>

namespace tenure {

/// When deadlocks are looked for.
enum class Detection : std::uint8_t {
  at_wait,    ///< the moment a wait begins; costs what can be reached from the new waiter
  on_demand,  ///< only in LockManager::find_deadlock(), which some thread calls now and then
};

/// How a LockManager behaves. Set what differs:
///   LockManager locks({.victim = VictimPolicy::fewest_locks});
struct LockManagerOptions {
  /// Parts of the table that never disturb each other, rounded up to a power of two. More parts
  /// mean less contention between threads and 64 bytes each. Default: 128 per CPU, 256 to 4,096.
  std::optional<std::size_t> shards = std::nullopt;

  /// When deadlocks are looked for. On demand costs nothing at each wait, and finds them later.
  Detection detection = Detection::at_wait;

  /// Who gives way in a deadlock, unless the wait that closes the cycle asks for another policy.
  VictimPolicy victim = VictimPolicy::youngest;

  /// A policy of one's own; when set, it goes before `victim`.
  ChooseVictim choose_victim = {};

  /// How many resolved deadlocks recent_deadlocks() remembers.
  std::size_t deadlocks_kept = 64;

  /// Limits; beyond them a request answers Errc::resource_exhausted and changes nothing.
  std::size_t waiters_per_lock_max = 10'000;
  std::size_t locks_per_transaction_max = 16'000'000;
};

/// How long a call may wait, and what may call it off.
struct WaitOptions {
  /// Errc::timed_out after it. Default: wait for ever.
  std::optional<std::chrono::steady_clock::time_point> deadline = std::nullopt;

  /// Errc::cancelled when it is asked to stop.
  std::stop_token cancel = {};

  /// Who gives way if this wait closes a cycle. Default: the manager's policy.
  std::optional<VictimPolicy> victim = std::nullopt;
};

/// `txn.lock(row, LockMode::exclusive, within(50ms))`
[[nodiscard]] inline WaitOptions within(std::chrono::nanoseconds patience) {
  return {.deadline = std::chrono::steady_clock::now() + patience};
}

/// How one transaction behaves.
struct TransactionOptions {
  /// The caller's own number for it. Default: a fresh one from 2^63 upwards, growing.
  std::optional<TxnId> id = std::nullopt;

  /// Smaller is older. Default: its id. Give a transaction that replaces a victim the age of the
  /// first try, or it is the youngest again and may starve; Transaction::restart() does so itself.
  std::optional<std::uint64_t> age = std::nullopt;

  /// For VictimPolicy::lowest_priority: the smaller gives way.
  int priority = 0;
};

}  // namespace tenure
