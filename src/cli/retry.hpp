#pragma once

#include <chrono>
#include <stop_token>

#include <tenure/error.hpp>

#include "cli/arguments.hpp"

namespace tenure::cli {

/// End of the attempts of --retry, from now on; now without the option.
[[nodiscard]] Result<std::chrono::steady_clock::time_point> retry_end(const Arguments& arguments);

/// Pauses before the next attempt, for up to a quarter of a second. False if there is no time for
/// one, or if `cancel` was requested.
[[nodiscard]] bool pause_before_retry(std::chrono::steady_clock::time_point end,
                                      const std::stop_token& cancel);

/// Calls `attempt` until it succeeds or fails with another error than `unavailable`, or until
/// `end`. Calls it at least once. Returns its last result.
template <class Attempt>
[[nodiscard]] auto retry_until(std::chrono::steady_clock::time_point end, const Attempt& attempt,
                               const std::stop_token& cancel = {}) {
  auto result = attempt();
  while (!result && result.error() == Errc::unavailable && pause_before_retry(end, cancel)) {
    result = attempt();
  }
  return result;
}

}  // namespace tenure::cli
