#pragma once

#include <chrono>
#include <ctime>
#include <memory>
#include <optional>

#include "sys/steered_clock.hpp"

namespace tenure::sys {

/// Clock of a client that holds leases. Of each interval it counts the longer measure of
/// CLOCK_BOOTTIME and CLOCK_MONOTONIC_RAW: the first runs while the machine sleeps, which
/// std::chrono::steady_clock does not, the second is not slowed down by NTP (steered_clock.hpp).
/// Like CLOCK_BOOTTIME when the process begins, and ahead of it later; Deadline converts. Two
/// processes do not have the same time. Thread safe, lock-free.
struct BootClock {
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<BootClock>;
  static constexpr bool is_steady = true;

  [[nodiscard]] static time_point now() noexcept;
};

using BootTime = BootClock::time_point;

/// A moment in the future on both clocks, for timers of the kernel and for other processes. It has
/// come when either clock says so.
struct Deadline {
  ClockPair due{};

  [[nodiscard]] static Deadline at(BootTime when) noexcept;

  /// Zero or less: it has come.
  [[nodiscard]] std::chrono::nanoseconds left() const noexcept;
  /// When to look at left() again, as an absolute time for a timer on CLOCK_BOOTTIME. Up to a tenth
  /// of the time early, because that clock may be slowed down until then.
  [[nodiscard]] timespec look_at() const noexcept;
};

/// Lets one thread sleep until a time or until somebody rings. A ring is never lost: one that comes
/// while nobody sleeps ends the next sleep at once.
class Alarm {
 public:
  Alarm() = default;
  Alarm(const Alarm&) = delete;
  Alarm& operator=(const Alarm&) = delete;
  virtual ~Alarm() = default;

  /// Without a time: until somebody rings. May also return for no reason.
  virtual void wait_until(std::optional<BootTime> when) = 0;
  /// Thread safe.
  virtual void ring() noexcept = 0;
};

/// The time that leases are counted in, and what wakes a thread by it. Tests bring their own.
/// Thread safe.
class Clock {
 public:
  Clock() = default;
  Clock(const Clock&) = delete;
  Clock& operator=(const Clock&) = delete;
  virtual ~Clock() = default;

  [[nodiscard]] virtual BootTime now() const noexcept = 0;
  [[nodiscard]] virtual std::unique_ptr<Alarm> make_alarm() = 0;
};

/// The clock of this machine. Its alarms also wake a thread that is due when the machine wakes up.
[[nodiscard]] Clock& real_clock();

}  // namespace tenure::sys
