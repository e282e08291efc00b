#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tenure {

/// Modes of multi-granularity locking (Gray et al., "Granularity of Locks in a Shared Data Base",
/// 1975) and the update mode. Before locking a node in S, hold IS or more on its ancestors; before
/// U, SIX or X, hold IX or more. Lock from the root to the leaf.
///
/// U reads and reserves the upgrade to X: it is compatible with readers, and a second updater
/// waits. Two readers that both want to write deadlock; two updaters do not.
enum class LockMode : std::uint8_t {
  intention_shared,            ///< IS: locks descendants in S or IS
  intention_exclusive,         ///< IX: locks descendants in any mode
  shared,                      ///< S: reads the whole subtree
  update,                      ///< U: reads the whole subtree, with the only right to upgrade to X
  shared_intention_exclusive,  ///< SIX: reads the whole subtree, locks descendants in X
  exclusive,                   ///< X: excludes every other holder
};

/// All modes, weakest first.
inline constexpr std::array all_lock_modes{
    LockMode::intention_shared, LockMode::intention_exclusive,        LockMode::shared,
    LockMode::update,           LockMode::shared_intention_exclusive, LockMode::exclusive,
};

/// Compatibility matrix: whether two owners may hold `a` and `b` on one resource. Symmetric.
[[nodiscard]] constexpr bool compatible_with(LockMode a, LockMode b) noexcept {
  constexpr bool y = true;
  constexpr bool n = false;
  constexpr std::array<std::array<bool, 6>, 6> matrix{{
      //      IS IX S  U SIX X
      /*IS */ {y, y, y, y, y, n},
      /*IX */ {y, y, n, n, n, n},
      /*S  */ {y, n, y, y, n, n},
      /*U  */ {y, n, y, n, n, n},
      /*SIX*/ {y, n, n, n, n, n},
      /*X  */ {n, n, n, n, n, n},
  }};
  return matrix[static_cast<std::size_t>(a)][static_cast<std::size_t>(b)];
}

/// Least upper bound: the weakest mode that covers both, and the result of an upgrade.
/// The order is IS < S < U < SIX < X and IS < IX < SIX.
[[nodiscard]] constexpr LockMode join(LockMode a, LockMode b) noexcept {
  const LockMode low = a < b ? a : b;
  const LockMode high = a < b ? b : a;
  const bool apart = low == LockMode::intention_exclusive &&
                     (high == LockMode::shared || high == LockMode::update);
  return apart ? LockMode::shared_intention_exclusive : high;
}

/// Whether a hold in mode `held` includes everything that `wanted` grants.
[[nodiscard]] constexpr bool covers(LockMode held, LockMode wanted) noexcept {
  return join(held, wanted) == held;
}

/// Whether the mode is X.
[[nodiscard]] constexpr bool is_exclusive(LockMode mode) noexcept {
  return mode == LockMode::exclusive;
}

/// Whether the mode announces locks on descendants: IS, IX, SIX.
[[nodiscard]] constexpr bool is_intention(LockMode mode) noexcept {
  return mode == LockMode::intention_shared || mode == LockMode::intention_exclusive ||
         mode == LockMode::shared_intention_exclusive;
}

/// Mode to hold on every ancestor before a node is locked in `mode`.
[[nodiscard]] constexpr LockMode ancestor_mode(LockMode mode) noexcept {
  return mode == LockMode::intention_shared || mode == LockMode::shared
             ? LockMode::intention_shared
             : LockMode::intention_exclusive;
}

/// Short name in the literature: IS, IX, S, U, SIX, X.
[[nodiscard]] constexpr std::string_view to_string(LockMode mode) noexcept {
  constexpr std::array<std::string_view, 6> names{"IS", "IX", "S", "U", "SIX", "X"};
  return names[static_cast<std::size_t>(mode)];
}

}  // namespace tenure
