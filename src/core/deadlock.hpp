#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/ids.hpp"
#include "core/lock_table.hpp"
#include "core/outcome.hpp"
#include "core/visits.hpp"

namespace tenure::core {

/// One edge of the cycle and the wait it comes from.
struct Edge {
  Revision ticket{};
  Resource resource;
};

/// Upper bounds for the visits of all searches of one command, and of all commands of one batch.
/// A search through 10,000 waiters of one range needs about 40,000. Replicated behaviour: other
/// bounds, or another way to count visits, belong to a new cluster version.
inline constexpr std::uint64_t deadlock_visits_per_command_max = 250'000;
inline constexpr std::uint64_t deadlock_visits_per_batch_max = 4 * deadlock_visits_per_command_max;
/// Visits that every search may make, even if its batch has used up the bound above: a request that
/// few others depend on is not refused because of expensive requests in the same batch.
inline constexpr std::uint64_t deadlock_visits_always = 100;

/// If `start` is stuck (see Stuck), a shortest cycle of waits through it, beginning with a wait of
/// its own; else empty. Nothing if the answer would take more than `visits_max`.
///
/// Each lease is one owner: it waits for the owner of every hold that one of its waits conflicts
/// with, and of every wait ahead that it conflicts with; never for itself. A wait for permits waits
/// for all who have some of them or are ahead.
///
/// REQUIRES: without the last wait or grant of `start`, nobody would be stuck. Then a cycle leads
/// through it, for if none did, those it waits for would be stuck without it.
///
/// The cost is linear in the holds and waits that are reached and in their items: a queue is not
/// searched again for each of its waiters. With permits, there are up to three searches.
[[nodiscard]] std::optional<std::vector<Edge>> find_cycle(const LockTable& table, LeaseId start,
                                                          Visits& visits, std::uint64_t visits_max);

/// The same, as it is told to the one who gives way.
[[nodiscard]] std::vector<CycleStep> describe(const LockTable& table,
                                              const std::vector<Edge>& cycle);

}  // namespace tenure::core
