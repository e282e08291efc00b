#include "cli/supervisor.hpp"

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

/// Timer file descriptor on the boot clock, which also runs while the machine is suspended.
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

/// File descriptor that is readable after notify().
class EventFd {
 public:
  EventFd() : file_(eventfd(0, EFD_CLOEXEC)) {}
  EventFd(const EventFd&) = delete;
  EventFd& operator=(const EventFd&) = delete;
  ~EventFd() { close(file_); }

  [[nodiscard]] int file() const noexcept { return file_; }
  void notify() const {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = write(file_, &one, sizeof(one));
  }
  void drain() const {
    std::uint64_t count = 0;
    [[maybe_unused]] const auto taken = read(file_, &count, sizeof(count));
  }

 private:
  int file_;
};

}  // namespace

BootTime watchdog_deadline(const LockHandle& held, std::chrono::milliseconds ttl) {
  return BootClock::now() + (held.valid_until() - std::chrono::steady_clock::now()) -
         Margins::of(ttl).watchdog;
}

Supervisor::Supervisor(const LockHandle& held, Child& child, Watchdog& watchdog, Options options)
    : held_(held),
      child_(child),
      watchdog_(watchdog),
      options_(std::move(options)),
      margins_(Margins::of(options_.ttl)) {}

ChildResult Supervisor::run(const Signals& signals, const Foreground& foreground) {
  const Timer timer;
  const EventFd lost;
  const std::stop_callback on_loss(held_.lost(), [&lost] { lost.notify(); });
  std::array<pollfd, 4> wakers{{{.fd = child_.file(), .events = POLLIN, .revents = 0},
                                {.fd = signals.file(), .events = POLLIN, .revents = 0},
                                {.fd = lost.file(), .events = POLLIN, .revents = 0},
                                {.fd = timer.file(), .events = POLLIN, .revents = 0}}};
  while (true) {
    timer.set(check_deadlines());
    poll(wakers.data(), wakers.size(), -1);
    if (wakers[0].revents != 0) {
      break;
    }
    if (wakers[2].revents != 0) {
      lost.drain();
    }
    while (const auto signal = signals.next()) {
      forward_signal(*signal, foreground);
    }
  }
  child_.await();
  if (phase_ != Phase::running) {
    // Kill the processes that the command has started, too.
    child_.signal(SIGKILL);
  }
  watchdog_.stop();
  foreground.give_to(getpgrp());
  const auto exit_code = child_.reap();
  return {.exit_code = exit_code, .is_lost = phase_ != Phase::running};
}

BootTime Supervisor::check_deadlines() {
  const auto now = BootClock::now();
  const auto end = now + (held_.valid_until() - std::chrono::steady_clock::now());
  if (phase_ == Phase::killed) {
    return now + std::chrono::hours(1);
  }
  if (held_.state() == GuardState::lost) {
    kill_child("the lock is lost");
    return now + std::chrono::hours(1);
  }
  watchdog_.set_deadline(child_.id(), end - margins_.watchdog);
  if (now >= end - margins_.kill) {
    kill_child("the lock could not be renewed and is about to be lost");
    return now + std::chrono::hours(1);
  }
  if (now < end - margins_.term) {
    return end - margins_.term;
  }
  if (std::exchange(phase_, Phase::terminating) == Phase::running) {
    options_.warn("the lock cannot be renewed: sending SIGTERM to the command");
    child_.signal(SIGTERM);
    child_.signal(SIGCONT);  // A stopped process does not handle SIGTERM.
  }
  return end - margins_.kill;
}

void Supervisor::kill_child(std::string_view why) {
  phase_ = Phase::killed;
  child_.signal(SIGKILL);
  options_.warn(std::string(why) + ": sending SIGKILL to the command");
}

void Supervisor::forward_signal(int signal, const Foreground& foreground) {
  switch (signal) {
    case SIGCHLD: on_child_stopped(foreground); return;
    case SIGCONT:
      foreground.give_to(child_.id());
      child_.signal(SIGCONT);
      return;
    default: child_.signal(signal); return;
  }
}

void Supervisor::on_child_stopped(const Foreground& foreground) {
  const int signal = child_.stopped_by();
  if (signal == SIGTTIN || signal == SIGTTOU) {
    // A background process accessed the terminal: put it in the foreground.
    foreground.give_to(child_.id());
    if (foreground.is_ours()) {
      child_.signal(SIGCONT);
    }
    return;
  }
  if (signal == SIGTSTP) {
    // Ctrl-Z. The lease is not renewed while this process is stopped; the watchdog enforces its
    // end.
    foreground.give_to(getpgrp());
    kill(getpid(), SIGSTOP);
  }
}

}  // namespace tenure::cli
