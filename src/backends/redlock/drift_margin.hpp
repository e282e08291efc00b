#pragma once

#include <chrono>

namespace tenure::backends::redlock {

/// Part of a TTL that is not used, to allow for clock drift between the servers and the client and
/// for the resolution of their clocks: 1 % and 2 ms, as in Redlock.
[[nodiscard]] constexpr std::chrono::nanoseconds drift_margin(
    std::chrono::milliseconds ttl) noexcept {
  return std::chrono::nanoseconds(ttl) / 100 + std::chrono::milliseconds(2);
}

}  // namespace tenure::backends::redlock
