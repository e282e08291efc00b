#pragma once

#include <chrono>
#include <optional>

namespace tenure::server::raft {

/// Monotonic time of an event of the store.
using Time = std::chrono::steady_clock::time_point;

/// Sets `earliest` to `other` if that is earlier. Empty means never.
inline void keep_earlier(std::optional<Time>& earliest, std::optional<Time> other) {
  if (other.has_value() && (!earliest.has_value() || *other < *earliest)) {
    earliest = other;
  }
}

}  // namespace tenure::server::raft
