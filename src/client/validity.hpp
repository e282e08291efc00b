#pragma once

#include <algorithm>
#include <chrono>

#include "sys/boot_clock.hpp"

/// Lease arithmetic by the local clock. Pessimistic: the client counts from before it sends a
/// request, the service from after it receives it. So the lease ends here before it ends there.
namespace tenure::detail {

/// Clock drift allowance as in Redlock: 1 % of the TTL for different rates, and 2 ms for the
/// resolution of the clocks.
[[nodiscard]] constexpr std::chrono::nanoseconds drift_margin(
    std::chrono::milliseconds ttl) noexcept {
  return std::chrono::nanoseconds(ttl) / 100 + std::chrono::milliseconds(2);
}

/// End of the lease: from then on it counts as lost.
[[nodiscard]] constexpr sys::BootTime valid_until(sys::BootTime sent,
                                                  std::chrono::milliseconds ttl) noexcept {
  return sent + ttl - drift_margin(ttl);
}

/// Shortest TTL of a lease that is valid for at least this time by the local clock: the solution of
/// length = ttl - drift_margin(ttl), rounded up.
[[nodiscard]] constexpr std::chrono::milliseconds ttl_for(
    std::chrono::milliseconds length) noexcept {
  const auto scaled = (length.count() + 2) * 100;
  return std::chrono::milliseconds((scaled + 98) / 99);
}

/// Start of the risk: two thirds of the TTL. At the default of three renewals per TTL, the first
/// one is then overdue by a whole interval.
[[nodiscard]] constexpr sys::BootTime at_risk_from(sys::BootTime sent,
                                                   std::chrono::milliseconds ttl) noexcept {
  return sent + std::chrono::nanoseconds(ttl) * 2 / 3;
}

/// Confirmed period of a lease.
struct Term {
  sys::BootTime sent{};  ///< Time before the confirmed request was sent.
  std::chrono::milliseconds ttl{};

  friend bool operator==(const Term&, const Term&) = default;
};

/// Term while a change to a shorter TTL is pending. The service may count either of them, so the
/// term ends when the earlier one does.
[[nodiscard]] constexpr Term shortened(const Term& known, const Term& asked) noexcept {
  const auto counted = asked.ttl - drift_margin(asked.ttl);
  return {.sent = std::min(asked.sent, valid_until(known.sent, known.ttl) - counted),
          .ttl = asked.ttl};
}

/// Interval between two renewals. REQUIRES: renewals_per_ttl > 0.
[[nodiscard]] constexpr std::chrono::nanoseconds renewal_interval(std::chrono::milliseconds ttl,
                                                                  int renewals_per_ttl) noexcept {
  return std::chrono::nanoseconds(ttl) / renewals_per_ttl;
}

}  // namespace tenure::detail
