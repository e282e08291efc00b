#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace tenure::backends::etcd {

/// Adaptive batching delay (Nagle-style). Threads whose requests completed together usually send
/// the next ones within a moment, and a batch costs little more than one request. After a batch of
/// n requests completes, the next batch is delayed until n requests are queued, for at most a
/// quarter of the round trip.
///
/// After a delay without success, the next 1, 2, 4, ... 256 batches are sent at once, so that a
/// workload without batches pays almost nothing. Pure policy, not thread safe.
class BatchDelay {
 public:
  using Clock = std::chrono::steady_clock;

  /// Records a completed batch of `parts` requests that took `took`. `others`: requests already
  /// queued.
  void on_completed(std::size_t parts, std::size_t others, Clock::duration took,
                    Clock::time_point now) {
    is_armed_ = parts + others > 1 && skips_left_ == 0;
    skips_left_ -= skips_left_ > 0 ? 1 : 0;
    expected_ = parts + others;
    until_ = now + took / rtt_divisor;
  }

  /// Time until which `present` queued requests are delayed; empty: send now.
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
  /// Number of batches to send without a delay.
  std::uint32_t skips_left_ = 0;
  /// The same, after the next delay that fails.
  std::uint32_t next_skips_ = 1;
};

}  // namespace tenure::backends::etcd
