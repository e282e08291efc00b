#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/ids.hpp"
#include "core/lock_table.hpp"
#include "core/outcome.hpp"
#include "core/visits.hpp"

namespace tenure::core {

/// Edge of a cycle in the wait-for graph: the wait, and the resource it waits at.
struct Edge {
  Revision ticket{};
  Resource resource;
};

/// Upper bounds for the visits of all deadlock searches of one command, and of all commands of one
/// batch. Every member pays them on its consensus thread. A search through 10,000 waiters of one
/// range needs about 40,000. Replicated behaviour: a change of the bounds, or of the way visits are
/// counted, needs a new cluster version.
inline constexpr std::uint64_t deadlock_visits_per_command_max = 250'000;
inline constexpr std::uint64_t deadlock_visits_per_batch_max = 4 * deadlock_visits_per_command_max;
/// Visits that every search may make, even after its batch has exhausted the bound above: expensive
/// requests in the same batch do not refuse a request that few others depend on.
inline constexpr std::uint64_t deadlock_visits_always = 100;

/// Searches the wait-for graph. If `start` is deadlocked (see DeadlockSet), returns a shortest
/// cycle through it, beginning with a wait of its own; else an empty cycle. Returns nothing if the
/// search exceeds `visits_max`.
///
/// A node is a lease. It waits for the lease of every hold, and of every wait ahead, that one of
/// its waits conflicts with; never for itself. A wait for permits waits for all holders of the
/// semaphore and for all waits ahead.
///
/// REQUIRES: without the last wait or grant of `start`, no lease would be deadlocked. Then a cycle
/// leads through `start`: if none did, the leases it waits for would be deadlocked without it.
///
/// The cost is linear in the holds and waits that are reached and in their items: a queue is not
/// searched again for each of its waiters. With permits, there are up to three searches.
[[nodiscard]] std::optional<std::vector<Edge>> find_cycle(const LockTable& table, LeaseId start,
                                                          Visits& visits, std::uint64_t visits_max);

/// Describes the cycle for the error of the victim.
[[nodiscard]] std::vector<CycleStep> describe(const LockTable& table,
                                              const std::vector<Edge>& cycle);

}  // namespace tenure::core
