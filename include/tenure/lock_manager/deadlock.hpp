#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tenure/ids.hpp>
#include <tenure/lock_mode.hpp>

namespace tenure {

/// Cycle in the wait-for graph, and its victim.
struct Deadlock {
  TxnId victim;              ///< Transaction that has to release its locks.
  std::vector<TxnId> cycle;  ///< Each waits for the next, the last for the first.

  friend bool operator==(const Deadlock&, const Deadlock&) = default;
};

/// Rule that selects the victim of a cycle. The youngest wins a tie.
enum class VictimPolicy : std::uint8_t {
  youngest,         ///< began last: loses the least work, and old ones complete
  oldest,           ///< began first
  fewest_locks,     ///< holds the fewest locks
  most_locks,       ///< holds the most locks
  least_work,       ///< was granted the fewest locks since it first began
  lowest_priority,  ///< has the smallest TransactionOptions::priority
};

/// Name of the enumerator.
[[nodiscard]] std::string_view to_string(VictimPolicy policy) noexcept;

/// Transaction of a cycle, as input of a policy.
struct DeadlockMember {
  TxnId txn;                   ///< Id of the transaction.
  std::uint64_t age = 0;       ///< Smaller is older; survives a restart of the transaction.
  std::size_t locks = 0;       ///< Number of locks it holds.
  std::uint64_t work = 0;      ///< Number of locks it was granted, over all restarts.
  int priority = 0;            ///< TransactionOptions::priority.
  std::string waits_for = {};  ///< Human-readable: `X on resource 7`.
};

/// Custom rule: returns the victim among the members of a cycle. Called while the manager holds no
/// mutex. A result that is no member selects the youngest.
using ChooseVictim = std::function<TxnId(std::span<const DeadlockMember>)>;

/// Resolved deadlock, as LockManager::recent_deadlocks() returns it.
struct DeadlockReport {
  Deadlock deadlock;                                       ///< Cycle and victim.
  std::vector<DeadlockMember> members = {};                ///< Members in the order of the cycle.
  std::chrono::system_clock::time_point resolved_at = {};  ///< Wall-clock time of the resolution.
};

/// Human-readable description of the cycle and its victim.
[[nodiscard]] std::string to_string(const DeadlockReport& report);

}  // namespace tenure
