#include "sys/boot_clock.hpp"

#include <array>
#include <cerrno>
#include <cstdint>
#include <system_error>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

namespace tenure::sys {
namespace {

/// A file descriptor of the kernel's. Throws std::system_error, as std::thread does, when the
/// process has no descriptor left; connect() makes an Errc of it.
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

/// Ours, because neither futex(2) nor condition variables take CLOCK_BOOTTIME.
class RealAlarm : public Alarm {
 public:
  void wait_until(std::optional<BootTime> when) override {
    set(when);
    std::array watched{pollfd{.fd = timer_.get(), .events = POLLIN, .revents = 0},
                       pollfd{.fd = bell_.get(), .events = POLLIN, .revents = 0}};
    static_cast<void>(poll(watched.data(), watched.size(), -1));
    std::uint64_t rings = 0;
    static_cast<void>(read(bell_.get(), &rings, sizeof rings));
  }

  void ring() noexcept override {
    const std::uint64_t once = 1;
    static_cast<void>(write(bell_.get(), &once, sizeof once));
  }

 private:
  void set(std::optional<BootTime> when) noexcept {
    itimerspec due{};  // all zero: never
    if (when) {
      const auto since_boot = when->time_since_epoch();
      const auto seconds = std::chrono::floor<std::chrono::seconds>(since_boot);
      due.it_value.tv_sec = static_cast<time_t>(seconds.count());
      // A time in the past fires at once, but 0 would switch it off.
      due.it_value.tv_nsec = static_cast<long>((since_boot - seconds).count()) | 1;
    }
    static_cast<void>(timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &due, nullptr));
  }

  Descriptor timer_{timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC)};
  Descriptor bell_{eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};
};

class RealClock : public Clock {
 public:
  [[nodiscard]] BootTime now() const noexcept override { return BootClock::now(); }
  [[nodiscard]] std::unique_ptr<Alarm> make_alarm() override {
    return std::make_unique<RealAlarm>();
  }
};

}  // namespace

Clock& real_clock() {
  static RealClock clock;
  return clock;
}

}  // namespace tenure::sys
