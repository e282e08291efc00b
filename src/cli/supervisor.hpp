#pragma once

#include <chrono>
#include <functional>
#include <string_view>

#include <tenure/client/guard.hpp>

#include "cli/child.hpp"
#include "cli/signals.hpp"
#include "cli/watchdog.hpp"

namespace tenure::cli {

/// Times of the signals to a command, counted back from the end of its lease.
struct Margins {
  std::chrono::milliseconds term;  ///< SIGTERM.
  std::chrono::milliseconds kill;  ///< SIGKILL.
  std::chrono::milliseconds
      watchdog;  ///< SIGKILL by the watchdog, if this process has not sent it.

  /// A renewed lease has more than two thirds of its TTL left; with less than three tenths, two
  /// renewals have failed. One twentieth, 20 to 500 ms, is for the kernel to terminate the
  /// processes.
  [[nodiscard]] static constexpr Margins of(std::chrono::milliseconds ttl) noexcept {
    constexpr std::chrono::milliseconds least{20};
    constexpr std::chrono::milliseconds most{500};
    const auto kill = ttl / 20 < least ? least : ttl / 20 > most ? most : ttl / 20;
    return {.term = ttl * 3 / 10, .kill = kill, .watchdog = kill / 2};
  }
};

/// Deadline of the watchdog, if the lease is not renewed again.
[[nodiscard]] sys::BootTime watchdog_deadline(const LockHandle& held,
                                              std::chrono::milliseconds ttl);

/// How a command under a lock ended.
struct ChildResult {
  int exit_code = 0;  ///< Exit code of the command.
  bool is_lost =
      false;  ///< Whether it was terminated because the lock was, or was about to be, lost.
};

/// Runs a command while its lock is held: forwards signals, sends SIGTERM when the lease is at
/// risk, and ensures that the process group is dead before the lease can end. Single-threaded.
class Supervisor {
 public:
  struct Options {
    std::chrono::milliseconds ttl{};
    std::function<void(std::string_view)> warn{};  ///< Prints a warning.
  };

  Supervisor(const LockHandle& held, Child& child, Watchdog& watchdog, Options options);
  [[nodiscard]] ChildResult run(const Signals& signals, const Foreground& foreground);

 private:
  enum class Phase { running, terminating, killed };

  /// Sends the signals that are due, and returns the time of the next check.
  [[nodiscard]] sys::BootTime check_deadlines();
  void forward_signal(int signal, const Foreground& foreground);
  /// Job control: stops this process as well, so that the shell sees the job stop.
  void on_child_stopped(const Foreground& foreground);
  void kill_child(std::string_view why);

  const LockHandle& held_;
  Child& child_;
  Watchdog& watchdog_;
  Options options_;
  Margins margins_;
  Phase phase_ = Phase::running;
};

}  // namespace tenure::cli
