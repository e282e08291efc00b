#pragma once

#include <chrono>
#include <functional>
#include <string_view>

#include <tenure/client/guard.hpp>

#include "cli/child.hpp"
#include "cli/signals.hpp"
#include "cli/warden.hpp"

namespace tenure::cli {

/// What a program must be told and must not outlive, counted back from the end of its lease.
struct Margins {
  std::chrono::milliseconds term;    ///< SIGTERM: as long before the end.
  std::chrono::milliseconds kill;    ///< SIGKILL.
  std::chrono::milliseconds warden;  ///< SIGKILL by the warden, if we did not come to it.

  /// A lease that is renewed has more than two thirds of its time left; with less than three
  /// tenths, two renewals have failed. A twentieth is for the kernel to end what was killed.
  [[nodiscard]] static constexpr Margins of(std::chrono::milliseconds ttl) noexcept {
    constexpr std::chrono::milliseconds least{20};
    constexpr std::chrono::milliseconds most{500};
    const auto kill = ttl / 20 < least ? least : ttl / 20 > most ? most : ttl / 20;
    return {.term = ttl * 3 / 10, .kill = kill, .warden = kill / 2};
  }
};

/// When the warden ends a program under this lock, if nothing is renewed any more.
[[nodiscard]] sys::BootTime last_moment(const LockHandle& held, std::chrono::milliseconds ttl);

/// How a program under a lock ended.
struct Ending {
  int exit_code = 0;     ///< Of the program.
  bool is_lost = false;  ///< It was ended because the lock was lost, or about to be.
};

/// Lets a child run for as long as the lock is held: passes signals on, tells it by SIGTERM when
/// the lease is in danger, and sees that all of its group is dead before the lease can end.
class Supervisor {
 public:
  struct Options {
    std::chrono::milliseconds ttl{};
    std::function<void(std::string_view)> warn{};  ///< For people.
  };

  Supervisor(const LockHandle& held, Child& child, Warden& warden, Options options);
  [[nodiscard]] Ending run(const Signals& signals, const Foreground& foreground);

 private:
  enum class Phase { running, asked, killed };

  /// Does what is due, and says when it has to look again.
  [[nodiscard]] sys::BootTime look();
  void pass_on(int signal, const Foreground& foreground);
  /// The child stopped: so do we, as far as shells can see.
  void stop_with_it(const Foreground& foreground);
  void kill_it(std::string_view why);

  const LockHandle& held_;
  Child& child_;
  Warden& warden_;
  Options options_;
  Margins margins_;
  Phase phase_ = Phase::running;
};

}  // namespace tenure::cli
