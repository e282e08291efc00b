#include "sys/boot_clock.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <system_error>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

namespace tenure::sys {
namespace {

/// Time that passes no slower than either of two clocks: the counterpart of ShorterTime for several
/// threads. A seqlock over a double buffer: readers use one half while the other is written.
class LongerTime {
 public:
  explicit LongerTime(ClockPair now) noexcept {
    anchors_[0].store({.clocks = now, .time = now.steered});
  }

  [[nodiscard]] std::chrono::nanoseconds at(ClockPair now) noexcept {
    auto version = version_.load(std::memory_order_acquire);
    auto anchor = anchors_[version % 2].load();
    // An unchanged version proves that the half was not written during the read.
    while (version != version_.load(std::memory_order_acquire)) {
      version = version_.load(std::memory_order_acquire);
      anchor = anchors_[version % 2].load();
    }
    const auto passed = std::max({now.steered - anchor.clocks.steered, now.raw - anchor.clocks.raw,
                                  std::chrono::nanoseconds::zero()});
    const auto time = anchor.time + passed;
    if (passed >= steering_window && !is_writing_.test_and_set(std::memory_order_acquire)) {
      if (version == version_.load(std::memory_order_relaxed)) {
        anchors_[(version + 1) % 2].store({.clocks = now, .time = time});
        version_.store(version + 1, std::memory_order_release);
      }
      is_writing_.clear(std::memory_order_release);
    }
    return time;
  }

 private:
  struct Anchor {
    ClockPair clocks{};
    std::chrono::nanoseconds time{};
  };
  /// Release and acquire, so that a reader that sees a newer half also sees the newer version.
  class Half {
   public:
    void store(const Anchor& anchor) noexcept {
      steered_.store(anchor.clocks.steered.count(), std::memory_order_release);
      raw_.store(anchor.clocks.raw.count(), std::memory_order_release);
      time_.store(anchor.time.count(), std::memory_order_release);
    }
    [[nodiscard]] Anchor load() const noexcept {
      using std::chrono::nanoseconds;
      return {.clocks = {.steered = nanoseconds(steered_.load(std::memory_order_acquire)),
                         .raw = nanoseconds(raw_.load(std::memory_order_acquire))},
              .time = nanoseconds(time_.load(std::memory_order_acquire))};
    }

   private:
    std::atomic<std::int64_t> steered_ = 0;
    std::atomic<std::int64_t> raw_ = 0;
    std::atomic<std::int64_t> time_ = 0;
  };

  std::atomic<std::size_t> version_ = 0;
  std::atomic_flag is_writing_;
  std::array<Half, 2> anchors_;
};

timespec to_timespec(std::chrono::nanoseconds time) noexcept {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(time);
  return {.tv_sec = static_cast<time_t>(seconds.count()),
          .tv_nsec = static_cast<long>((time - seconds).count())};
}

/// Owner of a file descriptor. Throws std::system_error, as std::thread does, if the process has no
/// descriptor left; connect() maps it to an Errc.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {
    if (number_ < 0) {
      throw std::system_error(errno, std::generic_category(), "no descriptor for a timer");
    }
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { close(number_); }

  [[nodiscard]] int get() const noexcept { return number_; }

 private:
  int number_;
};

/// Alarm on a timerfd, because neither futex(2) nor condition variables support CLOCK_BOOTTIME.
class RealAlarm : public Alarm {
 public:
  void wait_until(std::optional<BootTime> when) override {
    set(when);
    std::array watched{pollfd{.fd = timer_.get(), .events = POLLIN, .revents = 0},
                       pollfd{.fd = event_fd_.get(), .events = POLLIN, .revents = 0}};
    static_cast<void>(poll(watched.data(), watched.size(), -1));
    std::uint64_t notifications = 0;
    static_cast<void>(read(event_fd_.get(), &notifications, sizeof notifications));
  }

  void notify() noexcept override {
    const std::uint64_t once = 1;
    static_cast<void>(write(event_fd_.get(), &once, sizeof once));
  }

 private:
  void set(std::optional<BootTime> when) noexcept {
    itimerspec due{};  // all zero: never
    if (when) {
      due.it_value = Deadline::at(*when).look_at();
    }
    static_cast<void>(timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &due, nullptr));
  }

  Descriptor timer_{timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC)};
  Descriptor event_fd_{eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};
};

class RealClock : public Clock {
 public:
  [[nodiscard]] BootTime now() const noexcept override { return BootClock::now(); }
  [[nodiscard]] std::unique_ptr<Alarm> make_alarm() override {
    return std::make_unique<RealAlarm>();
  }
};

}  // namespace

BootTime BootClock::now() noexcept {
  static LongerTime time(read_clocks(CLOCK_BOOTTIME));
  return BootTime(time.at(read_clocks(CLOCK_BOOTTIME)));
}

Deadline Deadline::at(BootTime when) noexcept {
  // In this order, so that a preemption between the two makes the deadline earlier, not later.
  const auto now = read_clocks(CLOCK_BOOTTIME);
  const auto left = when - BootClock::now();
  return {.due = {.steered = now.steered + left, .raw = now.raw + left}};
}

std::chrono::nanoseconds Deadline::left() const noexcept {
  const auto now = read_clocks(CLOCK_BOOTTIME);
  return std::min(due.steered - now.steered, due.raw - now.raw);
}

timespec Deadline::look_at() const noexcept {
  const auto now = read_clock(CLOCK_BOOTTIME);
  const auto left = this->left();
  // Over such a short time, even a slowed-down clock loses less than leases tolerate.
  const bool is_near = left <= steering_window;
  // A time in the past fires at once, but 0 would switch the timer off.
  return to_timespec(
      std::max(now + (is_near ? left : left - left / 10), std::chrono::nanoseconds(1)));
}

Clock& real_clock() {
  static RealClock clock;
  return clock;
}

}  // namespace tenure::sys
