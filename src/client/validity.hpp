#pragma once

#include <algorithm>
#include <chrono>

#include "sys/boot_clock.hpp"

/// When a lease counts as what, by our own clock. Always pessimistic: everything is counted from
/// before the request was sent that the service confirmed, while the service counts from after it
/// arrived. So we stop believing before the service does.
namespace tenure::detail {

/// Clock drift allowance as in Redlock: 1 % of the TTL for different rates, and 2 ms for the
/// resolution of the clocks.
[[nodiscard]] constexpr std::chrono::nanoseconds drift_margin(
    std::chrono::milliseconds ttl) noexcept {
  return std::chrono::nanoseconds(ttl) / 100 + std::chrono::milliseconds(2);
}

/// From then on it counts as lost.
[[nodiscard]] constexpr sys::BootTime valid_until(sys::BootTime sent,
                                                  std::chrono::milliseconds ttl) noexcept {
  return sent + ttl - drift_margin(ttl);
}

/// From then on it is at risk: at the default of three renewals, the first was not confirmed though
/// as much time again has passed.
[[nodiscard]] constexpr sys::BootTime at_risk_from(sys::BootTime sent,
                                                   std::chrono::milliseconds ttl) noexcept {
  return sent + std::chrono::nanoseconds(ttl) * 2 / 3;
}

/// Confirmed at this time, for this long; or as if it were.
struct Term {
  sys::BootTime sent{};  ///< Before the request left.
  std::chrono::milliseconds ttl{};

  friend bool operator==(const Term&, const Term&) = default;
};

/// What is left of a term while a shorter one is asked for: nobody knows whether the service counts
/// that already, so it ends when the earlier of the two does.
[[nodiscard]] constexpr Term shortened(const Term& known, const Term& asked) noexcept {
  const auto counted = asked.ttl - drift_margin(asked.ttl);
  return {.sent = std::min(asked.sent, valid_until(known.sent, known.ttl) - counted),
          .ttl = asked.ttl};
}

/// Between two renewals. REQUIRES: renewals_per_ttl > 0.
[[nodiscard]] constexpr std::chrono::nanoseconds renewal_interval(std::chrono::milliseconds ttl,
                                                                  int renewals_per_ttl) noexcept {
  return std::chrono::nanoseconds(ttl) / renewals_per_ttl;
}

}  // namespace tenure::detail
