#pragma once

#include <compare>
#include <cstddef>

#include <tenure/key_range.hpp>
#include <tenure/lock_mode.hpp>

#include "core/ids.hpp"
#include "core/interval_tree.hpp"
#include "core/turn_queue.hpp"

namespace tenure::core {

/// Held and awaited ranges of one space, indexed by overlap. A request may have several ranges,
/// which do not overlap.
struct RangeIndex {
  struct Held {
    FencingToken token{};
    LockMode mode{};

    friend auto operator<=>(const Held&, const Held&) = default;
  };
  struct Queued {
    Turn turn{};
    LockMode mode{};

    friend auto operator<=>(const Queued&, const Queued&) = default;
  };

  /// Slots of a tree node. Most spaces have few ranges, so nodes are small.
  static constexpr std::size_t slots = 8;
  detail::IntervalTree<BytesRange, Held, slots> held;
  detail::IntervalTree<BytesRange, Queued, slots> queued;
};

}  // namespace tenure::core
