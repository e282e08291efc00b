#pragma once

#include <algorithm>
#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include <tenure/key_range.hpp>

namespace tenure::detail {

/// Traits of a kind of range for IntervalTree: the types of its ends, whether an interval with this
/// end reaches this start, and the order of ends.
template <class Range>
struct IntervalEnds;

template <>
struct IntervalEnds<KeyRange> {
  using Start = std::uint64_t;
  using End = std::uint64_t;  // last key inside

  [[nodiscard]] static bool reaches(End end, Start start) noexcept { return start <= end; }
  [[nodiscard]] static bool less(End left, End right) noexcept { return left < right; }
};

template <>
struct IntervalEnds<BytesRange> {
  using Start = std::string;
  using End = std::optional<std::string>;  // first key behind it; nullopt: infinity

  [[nodiscard]] static bool reaches(const End& end, const Start& start) noexcept {
    return !end || start < *end;
  }
  [[nodiscard]] static bool less(const End& left, const End& right) noexcept {
    return left && (!right || *left < *right);
  }
};

/// Interval tree: ranges with a value each, found by overlap in O(log n + k) for k results.
///
/// A B+ tree in the order of (start, value), where a parent knows the largest end below each
/// child (an "augmented tree": Cormen et al., "Introduction to Algorithms", section 14.3). A search
/// goes only into children that begin before its end and reach its start. Of those only the last
/// can turn out to hold nothing: in the others every range begins early enough, so the one with
/// the largest end overlaps.
///
/// A node is freed when it is empty, never merged or refilled before. Locks come and go in about
/// equal numbers, and then a half-full node is soon full again, while merging early makes the next
/// insert split again (Johnson and Shasha, "B-trees with inserts and deletes: why free-at-empty is
/// better than merge-at-half", 1993). It also means one allocation for every 16 inserts at most.
/// The price: after mass deletion nodes may be sparse until they are empty.
///
/// A node has room for `slots_max`. 32 slots of 64-bit keys are four cache lines of starts, of
/// which a search reads two or three; fewer make small trees smaller.
///
/// REQUIRES: no two ranges have both start and value in common.
///
/// Thread safety: as a std::map.
template <class Range, class Value, std::size_t slots_max = 32>
class IntervalTree {
  static_assert(std::is_trivially_copyable_v<Value>);
  static_assert(slots_max >= 4 && slots_max % 2 == 0);

 public:
  IntervalTree() noexcept = default;
  IntervalTree(IntervalTree&& other) noexcept
      : root_(std::move(other.root_)),
        height_(std::exchange(other.height_, 0)),
        size_(std::exchange(other.size_, 0)) {}
  IntervalTree& operator=(IntervalTree&& other) noexcept {
    root_ = std::move(other.root_);
    height_ = std::exchange(other.height_, 0);
    size_ = std::exchange(other.size_, 0);
    return *this;
  }
  /// Copies all nodes: O(n).
  IntervalTree(const IntervalTree& other)
      : root_(other.root_ ? copy_of(*other.root_, other.height_) : nullptr),
        height_(other.height_),
        size_(other.size_) {}
  IntervalTree& operator=(const IntervalTree& other) { return *this = IntervalTree(other); }
  ~IntervalTree() = default;

  /// Equal ranges may occur several times, with different values.
  void insert(const Range& range, Value value);

  /// Removes this range with this value. False if it is not there.
  bool erase(const Range& range, Value value);

  /// Calls visit(value) for every range that overlaps `range`, in the order of (start, value),
  /// until it returns false; then returns false.
  /// REQUIRES: `visit` does not change the tree.
  template <class Visit>
  // NOLINTNEXTLINE(modernize-use-nodiscard): a visit that never stops needs no result
  bool visit_overlapping(const Range& range, Visit&& visit) const {
    return !root_ || visit_below(*root_, height_, range, visit);
  }

  /// The same for all ranges.
  template <class Visit>
  // NOLINTNEXTLINE(modernize-use-nodiscard)
  bool visit_all(Visit&& visit) const {
    return !root_ || visit_below(*root_, height_, visit);
  }

  /// Calls visit(start, end, value) for every range, in the same order. The references are valid
  /// until the tree changes.
  template <class Visit>
  void visit_ranges(const Visit& visit) const {
    if (root_) {
      visit_ranges_below(*root_, height_, visit);
    }
  }

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }

 private:
  using Ends = IntervalEnds<Range>;
  using Start = typename Ends::Start;
  using End = typename Ends::End;

  /// A leaf: each slot is one range. Struct of arrays, because a search by key reads starts only.
  struct Node {
    Node() = default;
    Node(const Node&) = delete;
    Node& operator=(const Node&) = delete;
    virtual ~Node() = default;

    /// INVARIANT: the slots before `count` are in strictly ascending order of (start, value).
    std::size_t count = 0;
    std::array<Start, slots_max> starts = {};
    std::array<End, slots_max> ends = {};
    std::array<Value, slots_max> values = {};
  };

  /// Inner node: each slot is a child.
  /// INVARIANT: (start, value) of a slot is not after anything below its child, and that of the
  /// next slot is after all of it. The end of a slot is the largest below its child.
  struct Inner final : Node {
    std::array<std::unique_ptr<Node>, slots_max> children;
  };

  // Levels count from the leaves, which are level 0; only Inner nodes are above.
  [[nodiscard]] static Inner& as_inner(Node& node) { return static_cast<Inner&>(node); }
  [[nodiscard]] static const Inner& as_inner(const Node& node) {
    return static_cast<const Inner&>(node);
  }

  /// Visits the ranges below a node that overlap `range`. Returns false if the visit ended early.
  template <class Visit>
  static bool visit_below(const Node& node, std::size_t level, const Range& range, Visit& visit);
  /// Visits all ranges below a node.
  template <class Visit>
  static bool visit_below(const Node& node, std::size_t level, Visit& visit);
  /// Visits all ranges below a node with their ends.
  template <class Visit>
  static void visit_ranges_below(const Node& node, std::size_t level, const Visit& visit);
  /// Erases a range below a node, and updates the largest ends on the path. Returns whether it was
  /// there.
  static bool erase_below(Node& node, std::size_t level, const Range& range, Value value);

  /// Deep copy of a subtree.
  [[nodiscard]] static std::unique_ptr<Node> copy_of(const Node& node, std::size_t level);
  void raise_root();
  static void split_child(Inner& parent, std::size_t slot, std::size_t level);

  /// Inserts an empty slot, without its child.
  static void open_slot(Node& node, std::size_t slot) {
    std::shift_right(node.starts.begin() + slot, node.starts.begin() + node.count + 1, 1);
    std::shift_right(node.ends.begin() + slot, node.ends.begin() + node.count + 1, 1);
    std::shift_right(node.values.begin() + slot, node.values.begin() + node.count + 1, 1);
    ++node.count;
  }

  /// Removes a slot, without its child.
  static void close_slot(Node& node, std::size_t slot) {
    std::shift_left(node.starts.begin() + slot, node.starts.begin() + node.count, 1);
    std::shift_left(node.ends.begin() + slot, node.ends.begin() + node.count, 1);
    std::shift_left(node.values.begin() + slot, node.values.begin() + node.count, 1);
    --node.count;
  }

  /// The only child below which (start, value) can be or belongs.
  [[nodiscard]] static std::size_t child_for(const Inner& node, const Start& start, Value value) {
    const std::size_t slot = lower_bound(node, start, value);
    return slot == 0 || is_equal(node, slot, start, value) ? slot : slot - 1;
  }

  /// The first slot that is not before (start, value).
  [[nodiscard]] static std::size_t lower_bound(const Node& node, const Start& start, Value value) {
    std::size_t slot =
        count_before(node.count, [&](std::size_t other) { return node.starts[other] < start; });
    while (slot < node.count && is_before(node, slot, start, value)) {
      ++slot;  // equal starts: at most a node full of them
    }
    return slot;
  }

  [[nodiscard]] static bool is_before(const Node& node, std::size_t slot, const Start& start,
                                      Value value) {
    const auto order = node.starts[slot] <=> start;
    return order < 0 || (order == 0 && std::less<Value>()(node.values[slot], value));
  }

  [[nodiscard]] static bool is_equal(const Node& node, std::size_t slot, const Start& start,
                                     Value value) {
    return slot < node.count && node.values[slot] == value && node.starts[slot] == start;
  }

  /// Partition point of `count` slots. A binary search without a branch on the comparison, which
  /// the CPU would mispredict every second time.
  template <class IsBefore>
  [[nodiscard]] static std::size_t count_before(std::size_t count, IsBefore comes_before) {
    std::size_t first = 0;
    while (count > 1) {
      const std::size_t half = count / 2;
      first += comes_before(first + half - 1) ? half : 0;
      count -= half;
    }
    return count == 1 && comes_before(first) ? first + 1 : first;
  }

  [[nodiscard]] static const End& largest_end(const Node& node) {
    return *std::max_element(node.ends.begin(), node.ends.begin() + node.count, Ends::less);
  }

  /// Null until the first insert; afterwards an empty tree keeps one leaf.
  std::unique_ptr<Node> root_;
  std::size_t height_ = 0;  ///< Level of the root.
  std::size_t size_ = 0;
};

/// Single pass from the root: full nodes are split on the way down, so a split never propagates up.
template <class Range, class Value, std::size_t slots_max>
void IntervalTree<Range, Value, slots_max>::insert(const Range& range, Value value) {
  if (!root_) {
    root_ = std::make_unique<Node>();
  }
  if (root_->count == slots_max) {
    raise_root();
  }
  Node* node = root_.get();
  for (std::size_t level = height_; level > 0; --level) {
    Inner& inner = as_inner(*node);
    std::size_t slot = child_for(inner, range.start(), value);
    // The parent has room, because it was split on the way down if it was full.
    if (inner.children[slot]->count == slots_max) {
      split_child(inner, slot, level - 1);
      slot = child_for(inner, range.start(), value);
    }
    // The path is updated before the leaf: the insert cannot fail below.
    if (Ends::less(inner.ends[slot], range.end())) {
      inner.ends[slot] = range.end();
    }
    if (!is_before(inner, slot, range.start(), value)) {  // only ever in the first slot
      inner.starts[slot] = range.start();
      inner.values[slot] = value;
    }
    node = inner.children[slot].get();
  }
  const std::size_t slot = lower_bound(*node, range.start(), value);
  assert(!is_equal(*node, slot, range.start(), value));
  open_slot(*node, slot);
  node->starts[slot] = range.start();
  node->ends[slot] = range.end();
  node->values[slot] = value;
  ++size_;
}

template <class Range, class Value, std::size_t slots_max>
bool IntervalTree<Range, Value, slots_max>::erase(const Range& range, Value value) {
  if (!root_ || !erase_below(*root_, height_, range, value)) {
    return false;
  }
  // A root with one child adds a level without use.
  while (height_ > 0 && root_->count == 1) {
    root_ = std::move(as_inner(*root_).children[0]);
    --height_;
  }
  --size_;
  return true;
}

template <class Range, class Value, std::size_t slots_max>
bool IntervalTree<Range, Value, slots_max>::erase_below(Node& node, std::size_t level,
                                                        const Range& range, Value value) {
  if (level == 0) {
    const std::size_t slot = lower_bound(node, range.start(), value);
    if (!is_equal(node, slot, range.start(), value) || node.ends[slot] != range.end()) {
      return false;
    }
    close_slot(node, slot);
    return true;
  }
  Inner& inner = as_inner(node);
  const std::size_t slot = child_for(inner, range.start(), value);
  Node& child = *inner.children[slot];
  if (!erase_below(child, level - 1, range, value)) {
    return false;
  }
  if (child.count == 0) {
    std::shift_left(inner.children.begin() + slot, inner.children.begin() + inner.count, 1);
    inner.children[inner.count - 1].reset();  // the empty one, if it was the last
    close_slot(inner, slot);
  } else if (inner.ends[slot] == range.end()) {
    // The erased range had the largest end, perhaps as one of several. Any other end leaves it.
    inner.ends[slot] = largest_end(child);
  }
  return true;
}

template <class Range, class Value, std::size_t slots_max>
template <class Visit>
bool IntervalTree<Range, Value, slots_max>::visit_below(const Node& node, std::size_t level,
                                                        const Range& range, Visit& visit) {
  const std::size_t count = count_before(
      node.count, [&](std::size_t slot) { return Ends::reaches(range.end(), node.starts[slot]); });
  for (std::size_t slot = 0; slot < count; ++slot) {
    if (!Ends::reaches(node.ends[slot], range.start())) {
      continue;
    }
    const bool goes_on = level == 0
                             ? visit(node.values[slot])
                             : visit_below(*as_inner(node).children[slot], level - 1, range, visit);
    if (!goes_on) {
      return false;
    }
  }
  return true;
}

template <class Range, class Value, std::size_t slots_max>
template <class Visit>
bool IntervalTree<Range, Value, slots_max>::visit_below(const Node& node, std::size_t level,
                                                        Visit& visit) {
  for (std::size_t slot = 0; slot < node.count; ++slot) {
    const bool goes_on = level == 0 ? visit(node.values[slot])
                                    : visit_below(*as_inner(node).children[slot], level - 1, visit);
    if (!goes_on) {
      return false;
    }
  }
  return true;
}

template <class Range, class Value, std::size_t slots_max>
template <class Visit>
void IntervalTree<Range, Value, slots_max>::visit_ranges_below(const Node& node, std::size_t level,
                                                               const Visit& visit) {
  for (std::size_t slot = 0; slot < node.count; ++slot) {
    if (level == 0) {
      visit(node.starts[slot], node.ends[slot], node.values[slot]);
    } else {
      visit_ranges_below(*as_inner(node).children[slot], level - 1, visit);
    }
  }
}

template <class Range, class Value, std::size_t slots_max>
auto IntervalTree<Range, Value, slots_max>::copy_of(const Node& node, std::size_t level)
    -> std::unique_ptr<Node> {
  auto copy =
      level == 0 ? std::make_unique<Node>() : std::unique_ptr<Node>(std::make_unique<Inner>());
  copy->count = node.count;
  copy->starts = node.starts;
  copy->ends = node.ends;
  copy->values = node.values;
  for (std::size_t slot = 0; level > 0 && slot < node.count; ++slot) {
    as_inner(*copy).children[slot] = copy_of(*as_inner(node).children[slot], level - 1);
  }
  return copy;
}

/// Adds a level: a new root with one child, the old root.
template <class Range, class Value, std::size_t slots_max>
void IntervalTree<Range, Value, slots_max>::raise_root() {
  auto root = std::make_unique<Inner>();
  root->count = 1;
  root->starts[0] = root_->starts[0];
  root->ends[0] = largest_end(*root_);
  root->values[0] = root_->values[0];
  root->children[0] = std::move(root_);
  root_ = std::move(root);
  ++height_;
}

/// Splits a full child at `level`: its upper half moves to a new node right of it.
/// REQUIRES: the parent is not full.
template <class Range, class Value, std::size_t slots_max>
void IntervalTree<Range, Value, slots_max>::split_child(Inner& parent, std::size_t slot,
                                                        std::size_t level) {
  constexpr std::size_t half = slots_max / 2;
  Node& left = *parent.children[slot];
  std::unique_ptr<Node> right =
      level == 0 ? std::make_unique<Node>() : std::unique_ptr<Node>(std::make_unique<Inner>());
  std::move(left.starts.begin() + half, left.starts.end(), right->starts.begin());
  std::move(left.ends.begin() + half, left.ends.end(), right->ends.begin());
  std::move(left.values.begin() + half, left.values.end(), right->values.begin());
  if (level > 0) {
    auto& children = as_inner(left).children;
    std::move(children.begin() + half, children.end(), as_inner(*right).children.begin());
  }
  left.count = half;
  right->count = slots_max - half;

  open_slot(parent, slot + 1);
  std::shift_right(parent.children.begin() + slot + 1, parent.children.begin() + parent.count, 1);
  parent.starts[slot + 1] = right->starts[0];
  parent.ends[slot + 1] = largest_end(*right);
  parent.values[slot + 1] = right->values[0];
  parent.children[slot + 1] = std::move(right);
  parent.ends[slot] = largest_end(left);
}

}  // namespace tenure::detail
