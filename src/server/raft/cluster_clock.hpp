#pragma once

#include <algorithm>
#include <chrono>

#include "core/ids.hpp"

namespace tenure::server::raft {

/// Cluster time as its leader counts it: on from the last stamp in the log, by as much as the
/// leader's own clock has moved since. So a time without a leader does not count, and no lease ends
/// early. Never goes back. Knows no clock: it is told the time.
class ClusterClock {
 public:
  using Local = std::chrono::steady_clock::time_point;

  void begin(core::ClusterTime last, Local now) {
    began_at_ = now;
    began_with_ = last_ = last;
  }
  [[nodiscard]] core::ClusterTime at(Local now) {
    const auto passed = std::chrono::duration_cast<core::ClusterTime>(now - began_at_);
    last_ = std::max(last_, began_with_ + passed);
    return last_;
  }
  /// When it will be `time` here.
  [[nodiscard]] Local local(core::ClusterTime time) const {
    return began_at_ + (time - began_with_);
  }

 private:
  Local began_at_;
  core::ClusterTime began_with_{};
  core::ClusterTime last_{};
};

}  // namespace tenure::server::raft
