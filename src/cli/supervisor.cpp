#include "cli/supervisor.hpp"

#include <algorithm>
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

/// Time between SIGTERM and SIGKILL after the time limit, without --grace.
constexpr std::chrono::seconds default_grace{10};
/// Time of a check that only another event makes necessary.
constexpr std::chrono::hours next_check{1};

/// Timer file descriptor on the boot clock, which also runs while the machine is suspended.
class Timer {
 public:
  Timer() : file_(timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK)) {}
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;
  ~Timer() { close(file_); }

  [[nodiscard]] int file() const noexcept { return file_; }
  void set(BootTime when) const {
    // An absolute time: a delay of this process before the call does not postpone the timer.
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
    [[maybe_unused]] const auto written = ::write(file_, &one, sizeof(one));
  }
  /// Makes the descriptor unreadable again; otherwise poll() would return at once from now on.
  void drain() const {
    std::uint64_t count = 0;
    [[maybe_unused]] const auto taken = ::read(file_, &count, sizeof(count));
  }

 private:
  int file_;
};

}  // namespace

// valid_until() is a time of the steady clock; the remaining time is the same on both clocks now.
BootTime watchdog_deadline(const HeldLock& held, const EndRules& rules) {
  if (rules.on_lost == OnLost::ignore) {
    constexpr std::chrono::hours ten_years{24 * 365 * 10};
    return BootClock::now() + ten_years;
  }
  return BootClock::now() + (held.valid_until() - std::chrono::steady_clock::now()) -
         Margins::of(rules.ttl).watchdog;
}

Supervisor::Supervisor(const HeldLock& held, Child& child, Watchdog& watchdog, Options options)
    : held_(held),
      child_(child),
      watchdog_(watchdog),
      options_(std::move(options)),
      margins_(Margins::of(options_.rules.ttl, options_.rules.grace)) {}

ChildResult Supervisor::run(const Signals& signals, const Foreground& foreground) {
  const Timer timer;
  const EventFd lost;
  // Runs on the callback thread of the client. It only wakes the loop, which checks the state
  // itself.
  const std::stop_callback on_loss(held_.lost(), [&lost] { lost.notify(); });
  std::array<pollfd, 4> wakers{{{.fd = child_.file(), .events = POLLIN, .revents = 0},
                                {.fd = signals.file(), .events = POLLIN, .revents = 0},
                                {.fd = lost.file(), .events = POLLIN, .revents = 0},
                                {.fd = timer.file(), .events = POLLIN, .revents = 0}}};
  // Each turn sets the timer again, because a renewal may have moved the deadlines.
  while (true) {
    // All deadlines first: whatever woke the loop, they must not wait for its handling.
    timer.set(check_deadlines());
    poll(wakers.data(), wakers.size(), -1);
    // The command has ended. Its signals need no handling any more.
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
  // Not reaped yet, so that the id of the group is valid for the signals below.
  child_.await();
  if (phase_ != Phase::running) {
    // Kill the processes that the command has started, too.
    child_.signal(SIGKILL);
  }
  // While the leader of the group is still unreaped, as stop() requires.
  watchdog_.stop();
  // The shell expects its job in the foreground.
  foreground.give_to(getpgrp());
  const auto exit_code = child_.reap();
  return {.exit_code = exit_code, .is_lost = is_lost_, .is_over_time = kill_time_.has_value()};
}

BootTime Supervisor::check_deadlines() {
  const auto now = BootClock::now();
  // SIGKILL cannot be blocked: only the end of the command is awaited.
  if (phase_ == Phase::killed) {
    return now + next_check;
  }
  const auto lease = check_lease(now);
  return std::min(lease, check_time_limit(now));
}

BootTime Supervisor::check_lease(BootTime now) {
  if (options_.rules.on_lost == OnLost::ignore) {
    report_loss();
    return now + next_check;
  }
  // Read at each check, because renewals move it.
  const auto end = now + (held_.valid_until() - std::chrono::steady_clock::now());
  // A forced release, or the end of the lease: the next holder may run already, so there is no time
  // for SIGTERM.
  if (held_.is_lost()) {
    is_lost_ = true;
    kill_child("the lock is lost");
    return now + next_check;
  }
  // Before the checks below, and with the latest end: the watchdog must not kill the command of a
  // lease that was renewed.
  watchdog_.set_deadline(child_.id(), end - margins_.watchdog);
  if (now >= end - margins_.kill) {
    is_lost_ = true;
    kill_child("the lock could not be renewed and is about to be lost");
    return now + next_check;
  }
  if (options_.rules.on_lost == OnLost::kill) {
    return end - margins_.kill;
  }
  // More than this margin is left: check again when it is reached.
  if (now < end - margins_.term) {
    return end - margins_.term;
  }
  is_lost_ = true;
  terminate_child("the lock cannot be renewed");
  return end - margins_.kill;
}

BootTime Supervisor::check_time_limit(BootTime now) {
  const auto& limit = options_.rules.at_most;
  if (!limit || phase_ == Phase::killed) {
    return now + next_check;
  }
  if (now < started_ + *limit) {
    return started_ + *limit;
  }
  if (!kill_time_) {
    // From now on, not from the limit: after a suspension of the machine the command still gets
    // the whole time for its cleanup.
    kill_time_ = now + options_.rules.grace.value_or(default_grace);
    terminate_child("the command has run for its longest time (--at-most)");
  }
  if (now >= *kill_time_) {
    kill_child("the command has not ended after SIGTERM");
    return now + next_check;
  }
  return *kill_time_;
}

void Supervisor::report_loss() {
  if (held_.is_lost() && !std::exchange(is_lost_, true)) {
    options_.warn("the lock is lost: the command continues without it (--on-lost ignore)");
  }
}

void Supervisor::terminate_child(std::string_view why) {
  if (std::exchange(phase_, Phase::terminating) == Phase::running) {
    options_.warn(std::string(why) + ": sending SIGTERM to the command");
    child_.signal(SIGTERM);
    child_.signal(SIGCONT);  // A stopped process does not handle SIGTERM.
  }
}

void Supervisor::kill_child(std::string_view why) {
  phase_ = Phase::killed;
  // First the signal, then the message: the terminal may block this process.
  child_.signal(SIGKILL);
  options_.warn(std::string(why) + ": sending SIGKILL to the command");
}

void Supervisor::forward_signal(int signal, const Foreground& foreground) {
  switch (signal) {
    case SIGCHLD: on_child_stopped(foreground); return;
    // The shell has continued the job: the command needs the terminal and a SIGCONT of its own.
    case SIGCONT:
      foreground.give_to(child_.id());
      child_.signal(SIGCONT);
      return;
    default: child_.signal(signal); return;
  }
}

void Supervisor::on_child_stopped(const Foreground& foreground) {
  // 0 after SIGCHLD for other reasons, such as the end of the command.
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
