#pragma once

#include <algorithm>
#include <chrono>
#include <limits>
#include <type_traits>

/// Conversions between the durations and deadlines of callers and those of the implementation.
namespace tenure::detail {

/// Converts any duration to nanoseconds. Rounds up, so that a wait is never too short, and
/// saturates where nanoseconds end, after 292 years: `hours::max()` is a legal timeout.
template <class Rep, class Period>
[[nodiscard]] constexpr std::chrono::nanoseconds to_nanoseconds(
    const std::chrono::duration<Rep, Period>& timeout) {
  using std::chrono::nanoseconds;
  // Seconds as floating point represent every duration without overflow; they only select the
  // branch. One second of slack covers their rounding.
  constexpr auto whole_seconds_max =
      std::numeric_limits<nanoseconds::rep>::max() / 1'000'000'000 - 1;
  constexpr auto seconds_max = static_cast<double>(whole_seconds_max);
  const double seconds = std::chrono::duration<double>(timeout).count();
  if (!(seconds > -seconds_max)) {  // NaN too: do not wait.
    return nanoseconds::min();
  }
  return seconds < seconds_max ? std::chrono::ceil<nanoseconds>(timeout) : nanoseconds::max();
}

/// Time left until `deadline`, by the deadline's own clock; negative once it has passed.
template <class Clock, class Duration>
[[nodiscard]] std::chrono::nanoseconds time_until(
    const std::chrono::time_point<Clock, Duration>& deadline) {
  const auto now = Clock::now();
  // Saturates: the difference to time_point::min() does not fit.
  if (deadline <= now) {
    return std::chrono::nanoseconds::zero();
  }
  return to_nanoseconds(deadline - now);
}

/// Deadline `timeout` from now on the steady clock. Saturates at the end of the clock.
[[nodiscard]] inline std::chrono::steady_clock::time_point steady_deadline(
    std::chrono::nanoseconds timeout) {
  using Clock = std::chrono::steady_clock;
  const auto now = Clock::now();
  if (timeout <= std::chrono::nanoseconds::zero()) {
    return now;
  }
  return now + std::min<Clock::duration>(timeout, Clock::time_point::max() - now);
}

/// The same moment on the steady clock, which waits use. A later step of another clock does not
/// move the deadline.
template <class Clock, class Duration>
[[nodiscard]] std::chrono::steady_clock::time_point steady_deadline(
    const std::chrono::time_point<Clock, Duration>& deadline) {
  if constexpr (std::is_same_v<std::chrono::time_point<Clock, Duration>,
                               std::chrono::steady_clock::time_point>) {
    return deadline;
  } else {
    return steady_deadline(time_until(deadline));
  }
}

}  // namespace tenure::detail
