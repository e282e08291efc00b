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
  Place place;
};

/// Upper bound for the visits of one search. A search through 10,000 waiters of one range needs
/// about 40,000; all of it takes well below the default election timeout of 300 ms.
inline constexpr std::uint64_t deadlock_visits_max = 250'000;

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
/// searched again for each of its waiters. With permits, a part of it may be repeated.
[[nodiscard]] std::optional<std::vector<Edge>> find_cycle(
    const LockTable& table, LeaseId start, Visits& visits,
    std::uint64_t visits_max = deadlock_visits_max);

/// The same, as it is told to the one who gives way.
[[nodiscard]] std::vector<CycleStep> describe(const LockTable& table,
                                              const std::vector<Edge>& cycle);

}  // namespace tenure::core
