#pragma once

#include <chrono>
#include <ctime>
#include <memory>
#include <optional>

namespace tenure::sys {

/// Runs while the machine sleeps, too (CLOCK_BOOTTIME): a lease does not wait for a laptop's lid.
/// std::chrono::steady_clock stops there.
struct BootClock {
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<BootClock>;
  static constexpr bool is_steady = true;

  [[nodiscard]] static time_point now() noexcept {
    timespec time{};
    clock_gettime(CLOCK_BOOTTIME, &time);
    return time_point(std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec));
  }
};

using BootTime = BootClock::time_point;

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
