#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

#include "core/command.hpp"
#include "core/ids.hpp"
#include "core/limits.hpp"
#include "core/outcome.hpp"
#include "core/state.hpp"

namespace tenure::core {

struct Batch;

/// Replicated state machine of the lock service: (state, command, stamp) -> (state', Applied).
///
/// Deterministic: the same commands with the same stamps give the same state, byte for byte, on
/// every member. No clock, thread, randomness, I/O, floating point or unordered container is used.
/// The cost of a step is bounded (core/visits.hpp). Not thread safe.
///
/// Revisions are taken, in this order, by: the leases that expire (one revision for all of them),
/// the command itself, and each grant of a wait. A command that is granted at once uses its own
/// revision. The token of a grant is its revision.
///
/// With TENURE_CHECK_INVARIANTS, it checks all invariants of a small state after every command, and
/// of a large one at intervals such that the cost per command stays the same. A violation aborts
/// the program with a description.
class StateMachine {
 public:
  /// A replicated machine begins with the oldest version, so that all members begin with the same
  /// state; SetClusterVersion raises it.
  explicit StateMachine(Limits limits = {}, ClusterVersion version = oldest_version) {
    state_.limits = limits;
    state_.version = version;
  }
  explicit StateMachine(State state) : state_(std::move(state)) {}

  /// Applies one command as a batch of its own. First expires the leases whose deadline the stamp
  /// has reached: ends their waits, ends their holds, and grants waiters, each in name order.
  Applied apply(const Command& command, const Stamp& stamp);
  /// Applies the commands of a log entry one after the other, and calls done(i, applied) after
  /// each. The searches for deadlocks share deadlock_visits_per_batch_max visits, so all members
  /// must apply a batch as such.
  void apply(const Batch& batch, const std::function<void(std::size_t, const Applied&)>& done);

  [[nodiscard]] const State& state() const noexcept { return state_; }
  /// Time of the next expiry. The leader proposes a Tick then, if no other command comes first.
  [[nodiscard]] std::optional<ClusterTime> next_deadline() const {
    auto next = state_.leases.next_deadline();
    if (state_.restoration.is_active()) {
      next = std::min(next.value_or(state_.restoration.until), state_.restoration.until);
    }
    return next;
  }

 private:
  Applied apply_one(const Command& command, const Stamp& stamp, std::uint64_t& visits_left);
  Applied apply_checked(const Command& command, const Stamp& stamp, std::uint64_t& visits_left);

  State state_;
  std::uint64_t unchecked_steps_ = 0;  ///< Counted only where TENURE_CHECK_INVARIANTS is defined.
};

}  // namespace tenure::core
