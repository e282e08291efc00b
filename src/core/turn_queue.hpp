#pragma once

#include <compare>
#include <cstdint>

#include "core/flat_queue.hpp"
#include "core/ids.hpp"

namespace tenure::core {

/// Class of a wait. Upgrades precede all others, which wait for the hold that is upgraded anyway.
enum class Rank : std::uint8_t { upgrade, arrival };

/// Position of a wait in every queue: rank first, then ticket (order of arrival).
struct Turn {
  Rank rank = Rank::arrival;
  Revision ticket{};

  friend auto operator<=>(const Turn&, const Turn&) = default;
};

/// Wait queue of one resource. Appending and removal at either end are amortised O(1), the position
/// of a wait O(log n).
using TurnQueue = SortedQueue<Turn>;

}  // namespace tenure::core
