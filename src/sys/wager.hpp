#pragma once

#include <algorithm>
#include <cstdint>

namespace tenure::sys {

/// Whether to do again what costs a little and pays now and then. When it was in vain more often
/// than it paid, it is left out, and tried again after twice as many times as before, up to 256.
class Wager {
 public:
  /// Shall it be done this time?
  [[nodiscard]] bool is_on() noexcept {
    if (left_out_ == 0) {
      return true;
    }
    --left_out_;
    return false;
  }
  /// Was it in vain more often than it paid?
  [[nodiscard]] bool is_doubtful() const noexcept { return losses_ > 0; }
  void won() noexcept { losses_ -= losses_ > 0 ? 1 : 0; }
  /// `times`: as bad as so many.
  void lost(std::uint32_t times = 1) noexcept {
    losses_ = std::min(losses_ + times, losses_free + doublings_max);
    left_out_ = losses_ <= losses_free ? 0 : 1U << (losses_ - losses_free);
  }

 private:
  static constexpr std::uint32_t losses_free = 2;
  static constexpr std::uint32_t doublings_max = 8;

  std::uint32_t losses_ = 0;  ///< More than it paid.
  std::uint32_t left_out_ = 0;
};

}  // namespace tenure::sys
