#pragma once

#include <chrono>
#include <ctime>

namespace tenure::sys {

/// std::chrono::steady_clock as of the last kernel tick, at most some milliseconds ago. For
/// human-readable ages on hot paths, where reading the exact time would cost more than the rest.
[[nodiscard]] inline std::chrono::steady_clock::time_point coarse_now() noexcept {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return std::chrono::steady_clock::time_point(std::chrono::seconds(now.tv_sec) +
                                               std::chrono::nanoseconds(now.tv_nsec));
}

}  // namespace tenure::sys
