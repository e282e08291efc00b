#pragma once

#include <compare>
#include <cstdint>

#include "core/flat_queue.hpp"
#include "core/ids.hpp"

namespace tenure::core {

/// Upgrades stand before everybody else: all others wait for the one who upgrades anyway.
enum class Rank : std::uint8_t { upgrade, arrival };

/// A place in a queue.
struct Turn {
  Rank rank = Rank::arrival;
  Revision ticket{};

  friend auto operator<=>(const Turn&, const Turn&) = default;
};

/// Those who wait at one place, in order: joining at the end, leaving from either end and asking
/// for a position cost next to nothing.
using TurnQueue = SortedQueue<Turn>;

}  // namespace tenure::core
