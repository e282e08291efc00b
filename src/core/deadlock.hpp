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

/// If `start` is stuck (see Stuck), a shortest cycle of waits through it, beginning with a wait of
/// its own; else empty. Each lease is one owner: it waits for the owner of every hold that one of
/// its waits conflicts with, and of every wait ahead that it conflicts with; never for itself. A
/// wait for permits waits for all who have some of them or are ahead.
///
/// REQUIRES: without the last wait or grant of `start`, nobody would be stuck. Then a cycle leads
/// through it, for if none did, those it waits for would be stuck without it.
[[nodiscard]] std::vector<Edge> find_cycle(const LockTable& table, LeaseId start);

/// The same, as it is told to the one who gives way.
[[nodiscard]] std::vector<CycleStep> describe(const LockTable& table,
                                              const std::vector<Edge>& cycle);

}  // namespace tenure::core
