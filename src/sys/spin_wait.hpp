#pragma once

#include <chrono>
#include <thread>

#include "sys/parking.hpp"

namespace tenure::sys {

/// Spin-then-park: polls `condition` for at most `limit` before the caller blocks. Returns true as
/// soon as the condition is true; with a limit of zero, returns false without evaluating it.
///
/// Waking a blocked thread costs tens of microseconds; polling avoids that when the condition
/// becomes true sooner. It burns CPU. Between polls the thread yields, because the thread that
/// makes the condition true may need this core.
template <class Condition>
[[nodiscard]] bool poll_until(Condition condition, std::chrono::microseconds limit) {
  constexpr int polls_per_yield = 16;
  if (limit <= std::chrono::microseconds::zero()) {
    return false;
  }
  const auto deadline = std::chrono::steady_clock::now() + limit;
  for (;;) {
    for (int poll = 0; poll < polls_per_yield; ++poll) {
      if (condition()) {
        return true;
      }
      relax();
    }
    if (std::chrono::steady_clock::now() >= deadline) {
      return false;
    }
    std::this_thread::yield();
  }
}

}  // namespace tenure::sys
