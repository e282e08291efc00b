#pragma once

#include <cstddef>
#include <deque>
#include <vector>

#include "core/lock_table.hpp"
#include "core/outcome.hpp"
#include "server/auth/access.hpp"
#include "server/store/store.hpp"

namespace tenure::server::http {

/// Detected deadlock: a cycle of waits. The first step is the victim, whose request was refused.
struct DeadlockRecord {
  core::Revision revision{};
  core::ClusterTime time{};
  std::vector<core::CycleStep> cycle{};
  /// For each step, whether it held the lock that the step before it waits for. Otherwise it was
  /// ahead in the queue of that lock, or the step before it is unknown.
  std::vector<bool> holds_previous{};
};

/// Latest deadlocks observed by this process. Events name only the victim; this log keeps the whole
/// cycle. Store thread only.
///
/// Ring of fixed size: at most 100 cycles of 64 steps, so an application that deadlocks in a loop
/// cannot exhaust the memory. The log is local and in memory: other members and a restarted process
/// have their own.
class DeadlockLog final : public Listener {
 public:
  /// The oldest record is dropped when the log is full.
  static constexpr std::size_t deadlocks_max = 100;
  static constexpr std::size_t steps_max = 64;  ///< Longer cycles are truncated.
  /// Holders of one lock that are searched for the participant, which bounds the time on the
  /// store's thread.
  static constexpr std::size_t holders_max = 100;

  void applied(const core::Applied& what, const core::State& state) override;

  /// Newest first. Omits cycles without a readable step and redacts the unreadable steps of the
  /// others.
  [[nodiscard]] std::vector<DeadlockRecord> latest(const auth::Access& access) const;

 private:
  /// Records the cycle of a refusal; no effect for refusals for other reasons.
  void note(const core::Applied& what, const core::Refused& refused, const core::LockTable& locks);

  std::deque<DeadlockRecord> found_;
};

}  // namespace tenure::server::http
