#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include <tenure/lock_mode.hpp>

namespace tenure::detail {

/// Set of modes, one bit per mode.
using ModeMask = std::uint8_t;

[[nodiscard]] constexpr ModeMask mask_of(LockMode mode) noexcept {
  return static_cast<ModeMask>(1U << static_cast<unsigned>(mode));
}

/// Incompatible modes, by mode.
[[nodiscard]] constexpr std::array<ModeMask, all_lock_modes.size()> conflict_masks() noexcept {
  std::array<ModeMask, all_lock_modes.size()> masks{};
  for (const LockMode a : all_lock_modes) {
    for (const LockMode b : all_lock_modes) {
      masks[static_cast<std::size_t>(a)] |= compatible_with(a, b) ? ModeMask{0} : mask_of(b);
    }
  }
  return masks;
}

/// Modes that are incompatible with `mode`: a conflict check against a set of modes is one AND.
[[nodiscard]] constexpr ModeMask conflicts_of(LockMode mode) noexcept {
  constexpr auto table = conflict_masks();
  return table[static_cast<std::size_t>(mode)];
}

/// Number of holders, or of waiters, by mode.
class ModeCounts {
 public:
  /// Counts one holder or waiter.
  void add(LockMode mode) noexcept {
    ++counts_[static_cast<std::size_t>(mode)];
    mask_ |= mask_of(mode);
  }

  /// Uncounts one. REQUIRES: it was counted.
  void remove(LockMode mode) noexcept {
    if (--counts_[static_cast<std::size_t>(mode)] == 0) {
      mask_ &= static_cast<ModeMask>(~mask_of(mode));
    }
  }

  [[nodiscard]] ModeMask mask() const noexcept { return mask_; }

  /// Set of modes without one count of `mode`.
  [[nodiscard]] ModeMask mask_without(LockMode mode) const noexcept {
    const bool only_one = counts_[static_cast<std::size_t>(mode)] == 1;
    return only_one ? mask_ & static_cast<ModeMask>(~mask_of(mode)) : mask_;
  }

 private:
  /// INVARIANT: contains a mode iff its count is not zero.
  ModeMask mask_ = 0;
  /// Count of each mode.
  std::array<std::uint32_t, all_lock_modes.size()> counts_{};
};

}  // namespace tenure::detail
