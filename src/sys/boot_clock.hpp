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
/// Equals CLOCK_BOOTTIME when the process begins and may get ahead of it; Deadline converts. Times
/// of two processes are not comparable. Thread safe, lock-free.
struct BootClock {
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<BootClock>;
  static constexpr bool is_steady = true;

  [[nodiscard]] static time_point now() noexcept;
};

using BootTime = BootClock::time_point;

/// Point in time on both clocks, for kernel timers and for other processes. It has passed when
/// either clock has reached it.
struct Deadline {
  ClockPair due{};

  [[nodiscard]] static Deadline at(BootTime when) noexcept;

  /// Remaining time; zero or less: the deadline has passed.
  [[nodiscard]] std::chrono::nanoseconds left() const noexcept;
  /// Time at which to check left() again, as an absolute time for a timer on CLOCK_BOOTTIME. Up to
  /// a tenth of the remaining time early, because NTP may slow that clock down until then.
  [[nodiscard]] timespec look_at() const noexcept;
};

/// Timed wait of one thread, which other threads can end by notify(). A notification is never lost:
/// one without a waiting thread ends the next wait at once.
class Alarm {
 public:
  Alarm() = default;
  Alarm(const Alarm&) = delete;
  Alarm& operator=(const Alarm&) = delete;
  virtual ~Alarm() = default;

  /// Blocks until `when`, or until notify() if it is empty. May return spuriously.
  virtual void wait_until(std::optional<BootTime> when) = 0;
  /// Ends the current or next wait. Thread safe.
  virtual void notify() noexcept = 0;
};

/// Source of time for leases, and of timed waits. Tests inject a manual one. Thread safe.
class Clock {
 public:
  Clock() = default;
  Clock(const Clock&) = delete;
  Clock& operator=(const Clock&) = delete;
  virtual ~Clock() = default;

  [[nodiscard]] virtual BootTime now() const noexcept = 0;
  [[nodiscard]] virtual std::unique_ptr<Alarm> make_alarm() = 0;
};

/// Clock of this machine. Its alarms also fire when the machine wakes from sleep after their time.
[[nodiscard]] Clock& real_clock();

}  // namespace tenure::sys
