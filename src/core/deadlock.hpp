#pragma once

#include <vector>

#include "core/ids.hpp"
#include "core/lock_table.hpp"
#include "core/outcome.hpp"

namespace tenure::core {

/// One edge of the cycle and the wait it comes from.
struct Edge {
  Revision ticket{};
  Place place;
};

/// A shortest cycle of waits through `start`, beginning with a wait of `start`; empty if there is
/// none. Each lease is one owner: it waits for the owner of every hold that one of its waits
/// conflicts with, and of every wait ahead that it conflicts with; never for itself.
///
/// A wait for permits needs any of them, not all. It counts as waiting for somebody only if it
/// could not be served although all others gave back theirs; so every cycle is a deadlock, but a
/// deadlock in which several share the blame for missing permits is not seen.
[[nodiscard]] std::vector<Edge> find_cycle(const LockTable& table, LeaseId start);

/// The same, as it is told to the one who gives way.
[[nodiscard]] std::vector<CycleStep> describe(const LockTable& table,
                                              const std::vector<Edge>& cycle);

}  // namespace tenure::core
