#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tenure {

/// The modes of multi-granularity locking (Gray et al., "Granularity of Locks in a Shared Data
/// Base", 1975) and the update mode. Before locking a node in S, hold IS or more on everything
/// above it; before U, SIX or X, hold IX or more. Lock coarse to fine.
///
/// U reads and reserves the only right to become X: readers come and go beside it, a second
/// updater waits. Two readers that both want to write deadlock; two updaters do not.
enum class LockMode : std::uint8_t {
  intention_shared,            ///< IS: will read something below
  intention_exclusive,         ///< IX: will write something below
  shared,                      ///< S: reads all of it
  update,                      ///< U: reads all of it, the only one who may go on to X
  shared_intention_exclusive,  ///< SIX: reads all of it, will write something below
  exclusive,                   ///< X: nobody else at all
};

/// Every mode, weakest first.
inline constexpr std::array all_lock_modes{
    LockMode::intention_shared, LockMode::intention_exclusive,        LockMode::shared,
    LockMode::update,           LockMode::shared_intention_exclusive, LockMode::exclusive,
};

/// May two different transactions hold `a` and `b` on one resource at once? Symmetric.
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

/// The weakest mode that grants everything both grant; what an upgrade resolves to.
/// The order is IS < S < U < SIX < X and IS < IX < SIX.
[[nodiscard]] constexpr LockMode join(LockMode a, LockMode b) noexcept {
  const LockMode low = a < b ? a : b;
  const LockMode high = a < b ? b : a;
  const bool apart = low == LockMode::intention_exclusive &&
                     (high == LockMode::shared || high == LockMode::update);
  return apart ? LockMode::shared_intention_exclusive : high;
}

/// Does holding `held` already grant everything `wanted` would?
[[nodiscard]] constexpr bool covers(LockMode held, LockMode wanted) noexcept {
  return join(held, wanted) == held;
}

/// X: nobody else at all.
[[nodiscard]] constexpr bool is_exclusive(LockMode mode) noexcept {
  return mode == LockMode::exclusive;
}

/// IS, IX and SIX: modes that announce locks further down.
[[nodiscard]] constexpr bool is_intention(LockMode mode) noexcept {
  return mode == LockMode::intention_shared || mode == LockMode::intention_exclusive ||
         mode == LockMode::shared_intention_exclusive;
}

/// The mode to hold on every ancestor before taking `mode` on a node.
[[nodiscard]] constexpr LockMode ancestor_mode(LockMode mode) noexcept {
  return mode == LockMode::intention_shared || mode == LockMode::shared
             ? LockMode::intention_shared
             : LockMode::intention_exclusive;
}

/// The short name of the literature: IS, IX, S, U, SIX, X.
[[nodiscard]] constexpr std::string_view to_string(LockMode mode) noexcept {
  constexpr std::array<std::string_view, 6> names{"IS", "IX", "S", "U", "SIX", "X"};
  return names[static_cast<std::size_t>(mode)];
}

}  // namespace tenure
