#pragma once

#include <cstdint>

#include "core/deadlock.hpp"
#include "core/outcome.hpp"
#include "core/state.hpp"

namespace tenure::core {

/// What a step may look at: the leases, holds and waits of the state after it, with their items,
/// and what ended in the step.
[[nodiscard]] inline std::uint64_t size_of(const State& state, const Applied& applied) {
  std::uint64_t size = state.leases.all().size() + applied.events.size() + applied.notices.size();
  for (const auto& [lease, owned] : state.locks.owners()) {
    size += owned.items + owned.waits.size() + owned.holds.size();
  }
  return size;
}

/// Upper bound for Applied::visits of any step. The factor covers the six modes, a search that
/// begins with the waits of the lease itself, a second search where permits are involved, and
/// several deadlocks that end in one step.
[[nodiscard]] inline std::uint64_t visits_max(const State& state, const Applied& applied) {
  constexpr std::uint64_t factor = 64;
  return factor * (1 + size_of(state, applied));
}

/// Upper bound for Applied::search_visits of any step, from cluster version 2 on. A search notices
/// the end of its budget after it has counted the claims of one place.
[[nodiscard]] inline std::uint64_t search_visits_max(const State& state, const Applied& applied) {
  return deadlock_visits_per_command_max + size_of(state, applied);
}

}  // namespace tenure::core
