#pragma once

#include <map>
#include <optional>
#include <set>

#include "core/ids.hpp"
#include "core/lock_table.hpp"
#include "core/visits.hpp"

namespace tenure::core {

/// Those who can never go on, even if everybody who does not wait gave back all he has, and then
/// everybody who could go on did the same, and so on.
///
/// Each lease is one owner: it goes on when all its waits can be granted. What stands in the way of
/// a wait is what others hold and what others wait for ahead of it, and for permits also its own:
/// it keeps them while it waits.
struct DeadlockSet {
  std::set<LeaseId> leases{};
  /// Their waits for permits of which never enough can come free, by place.
  std::map<Resource, std::set<Revision>> permit_waits{};
};

/// Of these leases only. Nothing if it would exceed the budget. Visits what these leases own twice,
/// and all else at the places where they wait once.
/// REQUIRES: with a lease, also all it waits for are among them.
[[nodiscard]] std::optional<DeadlockSet> find_deadlocked(const LockTable& table,
                                                         const std::set<LeaseId>& among,
                                                         VisitBudget& budget);
/// Of all leases.
[[nodiscard]] DeadlockSet find_deadlocked(const LockTable& table);

}  // namespace tenure::core
