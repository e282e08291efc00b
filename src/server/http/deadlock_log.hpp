#pragma once

#include <cstddef>
#include <deque>
#include <vector>

#include "core/outcome.hpp"
#include "server/auth/access.hpp"
#include "server/store/store.hpp"

namespace tenure::server::http {

/// Detected deadlock: a cycle of waits. The first step is the victim, whose request was refused.
struct DeadlockRecord {
  core::Revision revision{};
  core::ClusterTime time{};
  std::vector<core::CycleStep> cycle{};
};

/// Latest deadlocks observed by this process. Events name only the victim; this log keeps the whole
/// cycle. Store thread only.
class DeadlockLog final : public Listener {
 public:
  static constexpr std::size_t deadlocks_max = 100;
  static constexpr std::size_t steps_max = 64;  ///< Longer cycles are truncated.

  void applied(const core::Applied& what, const core::State& state) override;

  /// Newest first. Omits cycles without a readable step and redacts the unreadable steps of the
  /// others.
  [[nodiscard]] std::vector<DeadlockRecord> latest(const auth::Access& access) const;

 private:
  void note(const core::Applied& what, const core::Refused& refused);

  std::deque<DeadlockRecord> found_;
};

}  // namespace tenure::server::http
