#pragma once

#include <algorithm>
#include <chrono>

#include "core/ids.hpp"

namespace tenure::server::raft {

/// Cluster time of a leader: the last stamp in the log plus the time that has passed on the
/// leader's own monotonic clock. Time without a leader does not count, so no lease expires early.
/// Monotonic. Takes the local time as a parameter. Not thread safe.
class ClusterClock {
 public:
  using Local = std::chrono::steady_clock::time_point;

  /// Continues from the time of the last stamp in the log.
  void begin(core::ClusterTime last, Local now) {
    began_at_ = now;
    began_with_ = last_ = last;
  }
  /// Cluster time at `now`.
  [[nodiscard]] core::ClusterTime at(Local now) {
    const auto passed = std::chrono::duration_cast<core::ClusterTime>(now - began_at_);
    last_ = std::max(last_, began_with_ + passed);
    return last_;
  }
  /// Local time at which the cluster time will be `time`.
  [[nodiscard]] Local local(core::ClusterTime time) const {
    return began_at_ + (time - began_with_);
  }

 private:
  /// Local time of begin().
  Local began_at_;
  /// Cluster time of begin().
  core::ClusterTime began_with_{};
  /// Latest result of at(), below which no later one goes.
  core::ClusterTime last_{};
};

}  // namespace tenure::server::raft
