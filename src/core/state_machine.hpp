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

/// The lock service as a function: (state, command, stamp) -> (state', what it did). The same
/// commands with the same stamps give the same state, byte for byte, everywhere. Not thread safe.
///
/// What takes a revision: leases that expire (one revision for all of them), the command itself,
/// and after these every grant to somebody who waited. A command that grants to its caller grants
/// with its own revision. The token of a grant is its revision.
///
/// Built with TENURE_CHECK_INVARIANTS, it looks at all of a small state after every command, and at
/// a large one as often as costs about the same per command; if anything is broken, the program
/// ends with a sentence about it.
class StateMachine {
 public:
  /// A replicated machine begins with the oldest version and is raised by SetClusterVersion, so
  /// that all members begin with the same state.
  explicit StateMachine(Limits limits = {}, ClusterVersion version = oldest_version) {
    state_.limits = limits;
    state_.version = version;
  }
  explicit StateMachine(State state) : state_(std::move(state)) {}

  /// First lets the leases expire whose deadline the stamp passes: their waits go first, then their
  /// holds, then those who waited for them enter, each in name order. Then applies the command, as
  /// a batch of its own.
  Applied apply(const Command& command, const Stamp& stamp);
  /// Applies the commands of a log entry one after the other, and calls done(i, applied) after
  /// each. The searches for deadlocks share deadlock_visits_per_batch_max visits, so all members
  /// must apply a batch as such.
  void apply(const Batch& batch, const std::function<void(std::size_t, const Applied&)>& done);

  [[nodiscard]] const State& state() const noexcept { return state_; }
  /// When there is something to expire; the leader sends a Tick then.
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
