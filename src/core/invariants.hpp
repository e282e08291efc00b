#pragma once

#include <string>
#include <vector>

#include "core/state.hpp"

namespace tenure::core::invariants {

/// What must be true of every state, as sentences about what is not. Costs a look at everything.
///
/// - Holders of one place are compatible; permits do not exceed the capacity.
/// - A queue stands only behind something that blocks each who is in it.
/// - Every hold and every wait has a live lease, which remembers its request.
/// - Tokens, tickets and events are not of the future; the counters of a lock are in order.
/// - Every index is what it would be if it were built anew.
[[nodiscard]] std::vector<std::string> check(const State& state);

/// Nobody is stuck: each who waits can go on when the others let him.
[[nodiscard]] std::vector<std::string> check_no_deadlock(const State& state);

/// What must be true of two states with one command between them: neither revision nor time goes
/// back, and all new tokens are greater than every one before.
[[nodiscard]] std::vector<std::string> check_step(const State& before, const State& after);

}  // namespace tenure::core::invariants
