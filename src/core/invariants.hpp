#pragma once

#include <string>
#include <vector>

#include "core/state.hpp"
#include "core/visits.hpp"

namespace tenure::core::invariants {

/// Checks the invariants of a state. Returns a sentence for each violation; empty if there is none.
/// Visits the whole state, each claim a constant number of times: a snapshot is checked like this
/// when it is read.
///
/// - Holders of one resource are compatible; permits do not exceed the capacity.
/// - Each wait is blocked by a holder or by a wait ahead of it.
/// - Every hold and every wait has a live lease, which remembers its request.
/// - Tokens, tickets and events are not beyond the revision; the counters of a lock are consistent.
/// - Every index equals one that is rebuilt from the state.
[[nodiscard]] std::vector<std::string> check(const State& state);
/// The same, and counts the visits to the claims on ranges and to their waits.
[[nodiscard]] std::vector<std::string> check(const State& state, Visits& visits);

/// Checks that no lease is deadlocked: each wait can be granted after other leases release.
[[nodiscard]] std::vector<std::string> check_no_deadlock(const State& state);

/// Checks the invariants of a step: neither revision nor time goes back, and all new tokens are
/// greater than every token before.
[[nodiscard]] std::vector<std::string> check_step(const State& before, const State& after);

}  // namespace tenure::core::invariants
