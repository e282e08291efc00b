#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

namespace tenure::core {

/// Segment tree over a sequence of numbers with thresholds. Finds the positions whose prefix sum
/// does not exceed the threshold. O(n) to build, O(log n) per call. Not thread safe.
class ThresholdTree {
 public:
  struct Position {
    std::int64_t number = 0;
    std::int64_t threshold = 0;
  };

  explicit ThresholdTree(const std::vector<Position>& row)
      : width_(std::bit_ceil(std::max<std::size_t>(1, row.size()))), nodes_(2 * width_) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      nodes_[width_ + i] = {.sum = row[i].number, .least = row[i].number - row[i].threshold};
    }
    for (auto node = width_ - 1; node > 0; --node) {
      join(node);
    }
  }

  /// Subtracts from the number at this position, which may be one past the last.
  void subtract(std::size_t position, std::int64_t amount) {
    if (position >= width_) {
      return;
    }
    auto& leaf = nodes_[width_ + position];
    leaf.sum -= amount;
    leaf.least -= leaf.least == never ? 0 : amount;
    join_above(width_ + position);
  }

  /// Returns the first position whose prefix sum does not exceed its threshold, each position once.
  std::optional<std::size_t> take() {
    if (nodes_[1].least > 0) {
      return std::nullopt;
    }
    std::size_t node = 1;
    for (std::int64_t before = 0; node < width_;) {
      node *= 2;
      if (before + nodes_[node].least > 0) {
        before += nodes_[node].sum;
        ++node;
      }
    }
    nodes_[node].least = never;
    join_above(node);
    return node - width_;
  }

 private:
  /// Larger than every sum, and small enough that adding a sum does not overflow.
  static constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max() / 4;

  struct Node {
    std::int64_t sum = 0;
    std::int64_t least = never;  ///< Least of (prefix sum within the node - threshold).
  };

  void join(std::size_t node) {
    const auto& left = nodes_[2 * node];
    const auto& right = nodes_[(2 * node) + 1];
    nodes_[node] = {.sum = left.sum + right.sum,
                    .least = std::min(left.least, std::min(never, left.sum + right.least))};
  }

  void join_above(std::size_t node) {
    for (node /= 2; node > 0; node /= 2) {
      join(node);
    }
  }

  std::size_t width_;  ///< Number of leaves, a power of two.
  std::vector<Node> nodes_;
};

}  // namespace tenure::core
