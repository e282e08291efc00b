#pragma once

#include <chrono>

namespace tenure::backends::redlock {

/// What is taken off a ttl for clocks that do not run at the same speed, and for their grain: 1 %
/// and 2 ms.
[[nodiscard]] constexpr std::chrono::nanoseconds drift_margin(
    std::chrono::milliseconds ttl) noexcept {
  return std::chrono::nanoseconds(ttl) / 100 + std::chrono::milliseconds(2);
}

}  // namespace tenure::backends::redlock
