#pragma once

#include <algorithm>
#include <chrono>
#include <ctime>

namespace tenure::sys {

// CLOCK_MONOTONIC and CLOCK_BOOTTIME are steered: while NTP corrects the wall clock gradually, they
// run faster or slower with it, with chrony by up to 8 %. CLOCK_MONOTONIC_RAW is not steered and is
// wrong only by the error of the oscillator, but it stops while the machine sleeps. Leases tolerate
// 1 %. So a server counts the shorter of two clocks, and a client the longer.

/// Readings of a steered clock and of CLOCK_MONOTONIC_RAW at (nearly) the same time.
struct ClockPair {
  std::chrono::nanoseconds steered{};
  std::chrono::nanoseconds raw{};
};

[[nodiscard]] inline std::chrono::nanoseconds read_clock(clockid_t clock) noexcept {
  timespec time{};
  clock_gettime(clock, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

/// `steered`: CLOCK_MONOTONIC or CLOCK_BOOTTIME.
[[nodiscard]] inline ClockPair read_clocks(clockid_t steered) noexcept {
  return {.steered = read_clock(steered), .raw = read_clock(CLOCK_MONOTONIC_RAW)};
}

/// How far CLOCK_MONOTONIC is ahead of CLOCK_MONOTONIC_RAW. Changes as fast as NTP steers.
[[nodiscard]] inline std::chrono::nanoseconds clock_offset() noexcept {
  const auto now = read_clocks(CLOCK_MONOTONIC);
  return now.steered - now.raw;
}

/// Upper bound for the time over which a fast and a slow phase of the steered clock may cancel each
/// other out: 8 % of it are 0.8 ms, less than the 2 ms that leases tolerate in any case. Shorter
/// costs precision, because the two clocks are not read at the same moment.
inline constexpr std::chrono::milliseconds steering_window{10};

/// Time that passes no faster than either of two clocks: each interval between two calls counts
/// with its shorter measure. For servers, which must not end a lease early. Begins at the time of
/// the steered clock. Reads no clock: the caller passes the readings. Not thread safe.
class ShorterTime {
 public:
  explicit ShorterTime(ClockPair now) noexcept : anchor_(now), time_(now.steered) {}

  /// Time at these readings. Never goes back.
  [[nodiscard]] std::chrono::nanoseconds at(ClockPair now) noexcept {
    const auto passed = std::min(now.steered - anchor_.steered, now.raw - anchor_.raw);
    last_ = std::max(last_, time_ + passed);
    if (passed >= steering_window) {
      anchor_ = now;
      time_ = last_;
    }
    return last_;
  }

 private:
  ClockPair anchor_;
  std::chrono::nanoseconds time_;  ///< Time at `anchor_`.
  std::chrono::nanoseconds last_ = time_;
};

/// Clock of a server that expires leases: the slower of CLOCK_MONOTONIC and CLOCK_MONOTONIC_RAW.
/// Equals std::chrono::steady_clock at first, and falls behind it later. Not thread safe.
class ServiceClock {
 public:
  using time_point = std::chrono::steady_clock::time_point;

  [[nodiscard]] time_point now() noexcept {
    return time_point(time_.at(read_clocks(CLOCK_MONOTONIC)));
  }

 private:
  ShorterTime time_{read_clocks(CLOCK_MONOTONIC)};
};

}  // namespace tenure::sys
