#pragma once

#include <map>
#include <optional>
#include <set>

#include "core/ids.hpp"
#include "core/lock_table.hpp"
#include "core/visits.hpp"

namespace tenure::core {

/// Deadlocked leases: those that remain blocked after runnable leases have repeatedly released all
/// they hold (the fixpoint of a graph reduction; Holt, "Some deadlock properties of computer
/// systems", 1972). With permits a cycle of waits is not sufficient for a deadlock, because a
/// holder outside of the cycle may release; this set is exact.
///
/// A lease is runnable when all its waits can be granted. A wait is blocked by claims of other
/// leases that are held or wait ahead of it; a wait for permits also by permits of its own lease,
/// which keeps them while it waits.
struct DeadlockSet {
  std::set<LeaseId> leases{};
  /// Waits of these leases for permits that can never become free, by resource.
  std::map<Resource, std::set<Revision>> permit_waits{};
};

/// Finds the deadlocked leases among these. Returns nothing if the budget is exceeded. Visits the
/// records of these leases twice, and other records at the resources where they wait once.
/// REQUIRES: `among` is closed under waits-for.
[[nodiscard]] std::optional<DeadlockSet> find_deadlocked(const LockTable& table,
                                                         const std::set<LeaseId>& among,
                                                         VisitBudget& budget);
/// Finds the deadlocked leases among all leases, without a budget. For invariants and tests.
[[nodiscard]] DeadlockSet find_deadlocked(const LockTable& table);

}  // namespace tenure::core
