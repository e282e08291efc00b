#pragma once

#include <cstddef>
#include <deque>
#include <vector>

#include "core/outcome.hpp"
#include "server/auth/access.hpp"
#include "server/store/store.hpp"

namespace tenure::server::http {

/// A cycle of waits that was found, and ended at once: the first of it gave way.
struct DeadlockRecord {
  core::Revision revision{};
  core::ClusterTime time{};
  std::vector<core::CycleStep> cycle{};
};

/// The latest deadlocks that this process saw. Events name only the one who gave way; this knows
/// for whom everybody waited. Of the store's thread.
class DeadlockLog final : public Listener {
 public:
  static constexpr std::size_t deadlocks_max = 100;
  static constexpr std::size_t steps_max = 64;  ///< Of a cycle; longer ones are cut.

  void applied(const core::Applied& what, const core::State& state) override;

  /// The newest first, those of which a step may be read; names and owners of the others are out.
  [[nodiscard]] std::vector<DeadlockRecord> latest(const auth::Access& access) const;

 private:
  void note(const core::Applied& what, const core::Refused& refused);

  std::deque<DeadlockRecord> found_;
};

}  // namespace tenure::server::http
