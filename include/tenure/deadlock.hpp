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

/// A cycle of transactions, each waiting for the next and the last for the first, and the one
/// that was chosen to give way.
struct Deadlock {
  TxnId victim;              ///< Who gives way.
  std::vector<TxnId> cycle;  ///< Who waits for whom, in order.

  friend bool operator==(const Deadlock&, const Deadlock&) = default;
};

/// Who of a cycle gives way. Ties are broken towards the youngest.
enum class VictimPolicy : std::uint8_t {
  youngest,         ///< the one that began last: least is lost, and the old ones get done
  oldest,           ///< the one that began first
  fewest_locks,     ///< the one that holds the fewest locks
  most_locks,       ///< the one whose end frees the most
  least_work,       ///< the one that was granted the fewest locks since it first began
  lowest_priority,  ///< the one with the smallest TransactionOptions::priority
};

/// The name of a policy, as it stands in the enumeration.
[[nodiscard]] std::string_view to_string(VictimPolicy policy) noexcept;

/// One transaction of a cycle, as a policy sees it.
struct DeadlockMember {
  TxnId txn;                   ///< Which one.
  std::uint64_t age = 0;       ///< Smaller is older; survives a restart of the transaction.
  std::size_t locks = 0;       ///< How many locks it holds.
  std::uint64_t work = 0;      ///< How many locks it was granted, over all its restarts.
  int priority = 0;            ///< As given at its beginning.
  std::string waits_for = {};  ///< What it waits for, for people: `X on resource 7`.
};

/// The policy of one's own: names the victim among the members of a cycle. Called without any lock
/// of the manager held. An answer that is no member counts as the youngest.
using ChooseVictim = std::function<TxnId(std::span<const DeadlockMember>)>;

/// A deadlock that was resolved, as LockManager::recent_deadlocks() keeps it.
struct DeadlockReport {
  Deadlock deadlock;                                       ///< The cycle and its victim.
  std::vector<DeadlockMember> members = {};                ///< In the order of the cycle.
  std::chrono::system_clock::time_point resolved_at = {};  ///< When, for people.
};

/// `1 waits for X on resource 7, held up by 2, ...; 2 gives way`.
[[nodiscard]] std::string to_string(const DeadlockReport& report);

}  // namespace tenure
