#pragma once

#include <chrono>
#include <cstddef>
#include <optional>

#include "sys/wager.hpp"

namespace tenure::backends::etcd {

/// Whether those who want to leave wait for others. Threads that were answered together mostly have
/// the next thing to do within a moment of each other, and together they cost little more than one;
/// whoever leaves first would have the others wait until he is back. They wait for at most a
/// quarter of the time that the way takes, and no more where it does not pay.
class Muster {
 public:
  using Clock = std::chrono::steady_clock;

  /// So many were answered, after so long. `others`: want to leave already.
  void landed(std::size_t parts, std::size_t others, Clock::duration took, Clock::time_point now) {
    is_open_ = parts + others > 1 && wager_.is_on();
    expected_ = parts + others;
    until_ = now + took / share;
  }

  /// Until when those `present` wait for more. Nothing: they leave now.
  [[nodiscard]] std::optional<Clock::time_point> wait_until(std::size_t present,
                                                            Clock::time_point now) {
    if (!is_open_) {
      return std::nullopt;
    }
    if (present < expected_ && now < until_) {
      return until_;
    }
    is_open_ = false;
    if (present < expected_) {
      wager_.lost();
    } else {
      wager_.won();
    }
    return std::nullopt;
  }

 private:
  static constexpr int share = 4;

  bool is_open_ = false;
  std::size_t expected_ = 0;
  Clock::time_point until_{};
  sys::Wager wager_;
};

}  // namespace tenure::backends::etcd
