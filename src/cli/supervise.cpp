#include "cli/supervise.hpp"

#include <array>
#include <csignal>
#include <cstdint>
#include <stop_token>
#include <utility>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

namespace tenure::cli {
namespace {

using sys::BootClock;
using sys::BootTime;

/// Wakes a poll at a time that also comes while the machine sleeps, or earlier.
class Timer {
 public:
  Timer() : file_(timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK)) {}
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;
  ~Timer() { close(file_); }

  [[nodiscard]] int file() const noexcept { return file_; }
  void set(BootTime when) const {
    itimerspec time{};
    time.it_value = sys::Deadline::at(when).look_at();
    timerfd_settime(file_, TFD_TIMER_ABSTIME, &time, nullptr);
  }

 private:
  int file_;
};

/// Readable once somebody has rung.
class Bell {
 public:
  Bell() : file_(eventfd(0, EFD_CLOEXEC)) {}
  Bell(const Bell&) = delete;
  Bell& operator=(const Bell&) = delete;
  ~Bell() { close(file_); }

  [[nodiscard]] int file() const noexcept { return file_; }
  void ring() const {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = write(file_, &one, sizeof(one));
  }
  void silence() const {
    std::uint64_t count = 0;
    [[maybe_unused]] const auto taken = read(file_, &count, sizeof(count));
  }

 private:
  int file_;
};

}  // namespace

BootTime last_moment(const LockHandle& held, std::chrono::milliseconds ttl) {
  return BootClock::now() + (held.valid_until() - std::chrono::steady_clock::now()) -
         Margins::of(ttl).warden;
}

Supervisor::Supervisor(const LockHandle& held, Child& child, Warden& warden, Options options)
    : held_(held),
      child_(child),
      warden_(warden),
      options_(std::move(options)),
      margins_(Margins::of(options_.ttl)) {}

Ending Supervisor::run(const Signals& signals, const Foreground& foreground) {
  const Timer timer;
  const Bell bell;
  const std::stop_callback on_loss(held_.lost(), [&bell] { bell.ring(); });
  std::array<pollfd, 4> wakers{{{.fd = child_.file(), .events = POLLIN, .revents = 0},
                                {.fd = signals.file(), .events = POLLIN, .revents = 0},
                                {.fd = bell.file(), .events = POLLIN, .revents = 0},
                                {.fd = timer.file(), .events = POLLIN, .revents = 0}}};
  while (true) {
    timer.set(look());
    poll(wakers.data(), wakers.size(), -1);
    if (wakers[0].revents != 0) {
      break;
    }
    if (wakers[2].revents != 0) {
      bell.silence();
    }
    while (const auto signal = signals.next()) {
      pass_on(*signal, foreground);
    }
  }
  child_.await();
  if (phase_ != Phase::running) {
    // What it has started ends with it.
    child_.signal(SIGKILL);
  }
  warden_.dismiss();
  foreground.give_to(getpgrp());
  const auto exit_code = child_.reap();
  return {.exit_code = exit_code, .is_lost = phase_ != Phase::running};
}

BootTime Supervisor::look() {
  const auto now = BootClock::now();
  const auto end = now + (held_.valid_until() - std::chrono::steady_clock::now());
  if (phase_ == Phase::killed) {
    return now + std::chrono::hours(1);
  }
  if (held_.state() == GuardState::lost) {
    kill_it("the lock is lost");
    return now + std::chrono::hours(1);
  }
  warden_.guard(child_.id(), end - margins_.warden);
  if (now >= end - margins_.kill) {
    kill_it("the lock could not be renewed and is about to be lost");
    return now + std::chrono::hours(1);
  }
  if (now < end - margins_.term) {
    return end - margins_.term;
  }
  if (std::exchange(phase_, Phase::asked) == Phase::running) {
    options_.warn("the lock cannot be renewed: the command is asked to end (SIGTERM)");
    child_.signal(SIGTERM);
    child_.signal(SIGCONT);  // One that is stopped hears nothing.
  }
  return end - margins_.kill;
}

void Supervisor::kill_it(std::string_view why) {
  phase_ = Phase::killed;
  child_.signal(SIGKILL);
  options_.warn(std::string(why) + ": the command is killed (SIGKILL)");
}

void Supervisor::pass_on(int signal, const Foreground& foreground) {
  switch (signal) {
    case SIGCHLD: stop_with_it(foreground); return;
    case SIGCONT:
      foreground.give_to(child_.id());
      child_.signal(SIGCONT);
      return;
    default: child_.signal(signal); return;
  }
}

void Supervisor::stop_with_it(const Foreground& foreground) {
  const int signal = child_.stopped_by();
  if (signal == SIGTTIN || signal == SIGTTOU) {
    // It wants the terminal, and we are those who can give it.
    foreground.give_to(child_.id());
    if (foreground.is_ours()) {
      child_.signal(SIGCONT);
    }
    return;
  }
  if (signal == SIGTSTP) {
    // A person pressed Ctrl-Z. The lease runs on without us, and the warden watches it.
    foreground.give_to(getpgrp());
    kill(getpid(), SIGSTOP);
  }
}

}  // namespace tenure::cli
