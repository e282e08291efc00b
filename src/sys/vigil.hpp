#pragma once

#include <chrono>

#include "sys/wager.hpp"

namespace tenure::sys {

/// Gives the core to whoever waits for it.
void let_others() noexcept;

/// Stays awake for a moment before a thread sleeps. To wake a thread on an idle core takes tens of
/// microseconds, more than most of what a lock costs; if the next thing to do comes within that
/// time, it is cheaper to look again than to sleep.
///
/// It is for idle cores only. When others want this one for long, or when nothing came for a few
/// times, it lets the thread sleep at once, and tries again after twice as many sleeps as the last
/// time, up to 256. For one thread at a time.
class Vigil {
 public:
  /// `longest`: for how long to stay awake. Zero: never.
  explicit Vigil(std::chrono::microseconds longest) noexcept;

  /// Calls `look` until it says that there was something: true. False: it is time to sleep.
  template <class Look>
  [[nodiscard]] bool keep(Look look) {
    if (!wager_.is_on()) {
      return false;
    }
    auto now = Clock::now();
    for (const auto end = now + longest_; now < end;) {
      if (look()) {
        wager_.won();
        return true;
      }
      if (!let_others(now)) {
        // Worse than in vain: a thread that yields to others comes last among them.
        wager_.lost(2);
        return false;
      }
    }
    wager_.lost();
    return false;
  }

 private:
  using Clock = std::chrono::steady_clock;

  /// False if one kept the core for long. `now`: when it last looked.
  [[nodiscard]] static bool let_others(Clock::time_point& now) noexcept;

  std::chrono::microseconds longest_;
  Wager wager_;
};

}  // namespace tenure::sys
