#pragma once

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <deque>

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

/// Those who wait at one place, in order. A sorted array: joining at the end, leaving from either
/// end and asking for a position cost next to nothing; leaving from the middle moves at most half
/// of the rest, 16 bytes each.
class TurnQueue {
 public:
  using Iterator = std::deque<Turn>::const_iterator;

  /// A turn is there once, however often it is inserted.
  void insert(const Turn& turn) {
    if (!contains(turn)) {
      turns_.insert(lower_bound(turn), turn);
    }
  }
  void erase(const Turn& turn) {
    if (contains(turn)) {
      turns_.erase(lower_bound(turn));
    }
  }

  /// The first one that is not before `turn`.
  [[nodiscard]] Iterator lower_bound(const Turn& turn) const {
    // Most come last.
    return turns_.empty() || turns_.back() < turn ? turns_.end()
                                                  : std::ranges::lower_bound(turns_, turn);
  }
  [[nodiscard]] bool contains(const Turn& turn) const {
    const auto it = lower_bound(turn);
    return it != turns_.end() && *it == turn;
  }
  /// How many are before `turn`.
  [[nodiscard]] std::size_t count_before(const Turn& turn) const {
    return static_cast<std::size_t>(lower_bound(turn) - turns_.begin());
  }

  [[nodiscard]] Iterator begin() const noexcept { return turns_.begin(); }
  [[nodiscard]] Iterator end() const noexcept { return turns_.end(); }
  [[nodiscard]] const Turn& operator[](std::size_t index) const { return turns_[index]; }
  [[nodiscard]] const Turn& back() const { return turns_.back(); }
  [[nodiscard]] std::size_t size() const noexcept { return turns_.size(); }
  [[nodiscard]] bool empty() const noexcept { return turns_.empty(); }

 private:
  std::deque<Turn> turns_;  ///< Ascending.
};

}  // namespace tenure::core
