#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace tenure::backends::etcd {

/// Whether those who want to leave wait for others. Threads that were answered together mostly have
/// the next thing to do within a moment of each other, and together they cost little more than one;
/// whoever leaves first would have the others wait until he is back. They wait for at most a
/// quarter of the time that the way takes. After a delay in which not all of them came, the next
/// 1, 2, 4, ... 256 batches are sent without one.
class BatchDelay {
 public:
  using Clock = std::chrono::steady_clock;

  /// So many were answered, after so long. `others`: want to leave already.
  void on_completed(std::size_t parts, std::size_t others, Clock::duration took,
                    Clock::time_point now) {
    is_armed_ = parts + others > 1 && skips_left_ == 0;
    skips_left_ -= skips_left_ > 0 ? 1 : 0;
    expected_ = parts + others;
    until_ = now + took / rtt_divisor;
  }

  /// Until when those `present` wait for more. Nothing: they leave now.
  [[nodiscard]] std::optional<Clock::time_point> delay_until(std::size_t present,
                                                             Clock::time_point now) {
    if (!is_armed_) {
      return std::nullopt;
    }
    if (present < expected_ && now < until_) {
      return until_;
    }
    is_armed_ = false;
    if (present < expected_) {
      skips_left_ = next_skips_;
      next_skips_ = std::min(2 * next_skips_, skips_max);
    } else {
      next_skips_ = 1;
    }
    return std::nullopt;
  }

 private:
  static constexpr int rtt_divisor = 4;
  static constexpr std::uint32_t skips_max = 256;

  bool is_armed_ = false;
  std::size_t expected_ = 0;
  Clock::time_point until_{};
  std::uint32_t skips_left_ = 0;  ///< Number of batches to send without a delay.
  std::uint32_t next_skips_ = 1;  ///< The same, after the next delay that fails.
};

}  // namespace tenure::backends::etcd
