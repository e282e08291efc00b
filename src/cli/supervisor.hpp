#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

#include "cli/child.hpp"
#include "cli/held_lock.hpp"
#include "cli/signals.hpp"
#include "cli/watchdog.hpp"

namespace tenure::cli {

/// Times of the signals to a command, counted back from the end of its lease. INVARIANT: term >
/// kill > watchdog, so that each step has time to work before the next one.
struct Margins {
  std::chrono::milliseconds term;  ///< SIGTERM.
  std::chrono::milliseconds kill;  ///< SIGKILL.
  std::chrono::milliseconds
      watchdog;  ///< SIGKILL by the watchdog, if this process has not sent it.

  /// A renewed lease has more than two thirds of its TTL left; with less than three tenths, two
  /// renewals have failed. `grace` is the time between the two signals instead, up to half of the
  /// TTL: with more, one late renewal would end the command. One twentieth, 20 to 500 ms, is for
  /// the kernel to terminate the processes.
  [[nodiscard]] static constexpr Margins of(
      std::chrono::milliseconds ttl,
      std::optional<std::chrono::milliseconds> grace = std::nullopt) noexcept {
    constexpr std::chrono::milliseconds least{20};
    constexpr std::chrono::milliseconds most{500};
    const auto kill = ttl / 20 < least ? least : ttl / 20 > most ? most : ttl / 20;
    const auto half = grace && *grace < ttl / 2 ? *grace : ttl / 2;
    return {.term = grace ? half + kill : ttl * 3 / 10, .kill = kill, .watchdog = kill / 2};
  }
};

/// What happens to the command when its lock is lost, or about to be.
enum class OnLost : std::uint8_t {
  term,    ///< SIGTERM, then SIGKILL before the end of the lease.
  kill,    ///< SIGKILL before the end of the lease, without SIGTERM.
  ignore,  ///< Nothing: it may run at the same time as the next holder.
};

/// When a command is ended before it exits by itself.
struct EndRules {
  std::chrono::milliseconds ttl{};                     ///< Lease TTL of the lock.
  OnLost on_lost = OnLost::term;                       ///< Action when the lock is lost.
  std::optional<std::chrono::milliseconds> at_most{};  ///< Longest run; none: no limit.
  /// Time between SIGTERM and SIGKILL; none: the defaults of Margins and of --at-most.
  std::optional<std::chrono::milliseconds> grace{};
};

/// Deadline of the watchdog, if the lease is not renewed again. With OnLost::ignore, the watchdog
/// acts only at the end of this process.
[[nodiscard]] sys::BootTime watchdog_deadline(const HeldLock& held, const EndRules& rules);

/// How a command under a lock ended. With `is_lost` or `is_over_time`, the exit code of the command
/// does not count: `tenure run` returns 79.
struct ChildResult {
  int exit_code = 0;          ///< Exit code of the command.
  bool is_lost = false;       ///< Whether the lock was, or was about to be, lost while it ran.
  bool is_over_time = false;  ///< Whether it ran longer than EndRules::at_most.
};

/// Runs a command while its lock is held: forwards signals, sends SIGTERM when the lease is at
/// risk, and ensures that the process group is dead before the lease can end. Single-threaded. The
/// deadlines are on the boot clock, so that a suspension of the machine counts: the timer fires as
/// soon as the machine runs again.
class Supervisor {
 public:
  /// Parameters of the supervision.
  struct Options {
    EndRules rules{};
    std::function<void(std::string_view)> warn{};  ///< Prints a warning.
  };

  /// REQUIRES: all three outlive this object, and the watchdog has its first deadline.
  Supervisor(const HeldLock& held, Child& child, Watchdog& watchdog, Options options);
  /// Returns when the command has ended and is reaped. REQUIRES: called once.
  [[nodiscard]] ChildResult run(const Signals& signals, const Foreground& foreground);

 private:
  /// Progress of the end of the command; it never goes back, even if the lease is renewed after the
  /// SIGTERM: the command has seen the signal and may be half-way through its cleanup.
  enum class Phase { running, terminating, killed };

  /// Sends the signals that are due, and returns the time of the next check.
  [[nodiscard]] sys::BootTime check_deadlines();
  /// The part for the lease of the lock.
  [[nodiscard]] sys::BootTime check_lease(sys::BootTime now);
  /// The part for the time limit.
  [[nodiscard]] sys::BootTime check_time_limit(sys::BootTime now);
  /// OnLost::ignore: reports the loss once.
  void report_loss();
  /// Passes a signal to the command; a few have a meaning for this process as well.
  void forward_signal(int signal, const Foreground& foreground);
  /// Job control: stops this process as well, so that the shell sees the job stop.
  void on_child_stopped(const Foreground& foreground);
  /// Sends SIGTERM to the group, unless it has received a signal before, and prints the reason.
  void terminate_child(std::string_view why);
  /// Sends SIGKILL to the group and prints the reason.
  void kill_child(std::string_view why);

  /// Lock under which the command runs.
  const HeldLock& held_;
  Child& child_;
  /// Enforces the deadline if this process cannot.
  Watchdog& watchdog_;
  Options options_;
  /// Times of the signals, for the TTL of the lease.
  Margins margins_;
  /// Start of the time limit.
  sys::BootTime started_ = sys::BootClock::now();
  /// Time of SIGKILL after the time limit; none before SIGTERM.
  std::optional<sys::BootTime> kill_time_{};
  /// Signal that the command has received last from this object.
  Phase phase_ = Phase::running;
  /// Whether the lock is lost, or the command was ended before that.
  bool is_lost_ = false;
};

}  // namespace tenure::cli
