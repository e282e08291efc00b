#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <absl/container/inlined_vector.h>

#include "core/cow_ptr.hpp"

namespace tenure::core {

/// Copy-on-write sorted map: a persistent B+ tree with path copying. A copy takes O(1), whatever
/// the size; a change copies the shared nodes on the path from the root, O(log n). So another
/// thread can encode a snapshot from a copy while the state machine continues.
///
/// The capacity of a node exceeds its size by at most a quarter, so memory does not depend on the
/// order of insertion, and a map with few keys is small.
///
/// Pointers to values are valid until the next insertion or erasure; a pointer into a copy does not
/// point into the original. Thread safety: different threads may use different copies; one copy is
/// for one thread at a time.
template <class Key, class Value, class Order = std::less<>>
class CowMap {
 public:
  /// Entry of a leaf. Its names are those of std::pair, so that structured bindings and generic
  /// code treat the map like a std::map.
  struct Slot {
    Key first{};
    Value second{};

    friend bool operator==(const Slot&, const Slot&) = default;
  };
  class Iterator;

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }

  /// Null if the map does not contain the key.
  template <class Wanted>
  [[nodiscard]] const Value* find(const Wanted& key) const;
  template <class Wanted>
  [[nodiscard]] bool contains(const Wanted& key) const {
    return find(key) != nullptr;
  }
  /// The same, mutable.
  template <class Wanted>
  [[nodiscard]] Value* edit(const Wanted& key);
  /// Value of this key; a default value is inserted if there is none.
  Value& operator[](const Key& key);
  /// Returns whether the map contained the key.
  template <class Wanted>
  bool erase(const Wanted& key);

  /// All keys in order, for loops that change the map: every change invalidates iterators.
  [[nodiscard]] std::vector<Key> keys() const;

  [[nodiscard]] Iterator begin() const;
  [[nodiscard]] Iterator end() const { return {}; }
  /// First entry that is not less than `key`, or greater than it (upper_bound).
  template <class Wanted>
  [[nodiscard]] Iterator lower_bound(const Wanted& key) const;
  template <class Wanted>
  [[nodiscard]] Iterator upper_bound(const Wanted& key) const;

  friend bool operator==(const CowMap& left, const CowMap& right) {
    return left.size_ == right.size_ && std::ranges::equal(left, right);
  }

 private:
  struct Node;
  struct Child {
    /// Separator: not greater than any key below this child, and greater than all keys below the
    /// previous one. Undefined for the first child of a branch.
    Key first{};
    CowPtr<Node> node{};
  };
  /// Maximum number of entries in a node: about 1 KiB, because an insertion moves half of them.
  template <class Entry>
  static constexpr std::size_t row_max = std::clamp<std::size_t>(1024 / sizeof(Entry), 16, 64);
  using Leaf = std::vector<Slot>;
  using Branch = std::vector<Child>;
  struct Node {
    std::variant<Leaf, Branch> row;
  };

  /// Number of entries of a leaf or branch whose key is less than `key`.
  template <class Row, class Wanted>
  static std::size_t count_before(const Row& row, const Wanted& key) {
    const auto it = std::ranges::partition_point(
        row, [&](const auto& entry) { return Order{}(entry.first, key); });
    return static_cast<std::size_t>(it - row.begin());
  }
  /// Index of the child whose subtree contains the key, or would contain it.
  template <class Wanted>
  static std::size_t child_of(const Branch& branch, const Wanted& key) {
    // Starts at the second child, because the separator of the first one is undefined.
    const auto it = std::partition_point(branch.begin() + 1, branch.end(), [&](const Child& child) {
      return !Order{}(key, child.first);
    });
    return static_cast<std::size_t>(it - branch.begin()) - 1;
  }
  /// Whether `index`, which count_before() returned for this key, is the slot of the key.
  template <class Wanted>
  static bool has_at(const Leaf& leaf, std::size_t index, const Wanted& key) {
    return index < leaf.size() && !Order{}(key, leaf[index].first);
  }
  static std::size_t size_of(const Node& node) {
    return std::visit([](const auto& row) { return row.size(); }, node.row);
  }

  /// Whether a node is the last one of its level.
  enum class Side : std::uint8_t { middle, end };
  struct Inserted {
    Value* value = nullptr;
    bool is_new = false;
    std::optional<Child> split{};  ///< New right neighbour of a node that was full.
  };
  /// Inserts the key below `link`, unless the map contains it. A full node splits, and the caller
  /// puts the new neighbour into its own row.
  static Inserted insert(CowPtr<Node>& link, const Key& key, Side side);
  static Inserted insert_in(Leaf& leaf, const Key& key, Side side);
  static Inserted insert_in(Branch& branch, const Key& key, Side side);
  /// Inserts one entry into a row; a full row grows by about a quarter.
  template <class Entry>
  static Entry& put(std::vector<Entry>& row, std::size_t index, Entry entry);
  template <class Entry>
  static std::vector<Entry> split(std::vector<Entry>& row, std::size_t index);

  /// Erases the key below `link`. Returns whether there was one.
  template <class Wanted>
  static bool erase_from(CowPtr<Node>& link, const Wanted& key);
  static void merge_if_sparse(Branch& branch, std::size_t index);
  /// Removes one entry of a row, and returns spare capacity.
  template <class Entry>
  static void remove(std::vector<Entry>& row, std::size_t index);

  /// Root node; null for an empty map, which needs no allocation.
  CowPtr<Node> root_;
  std::size_t size_ = 0;
};

/// Forward iterator in ascending order. Valid until the map changes.
template <class Key, class Value, class Order>
class CowMap<Key, Value, Order>::Iterator {
 public:
  using value_type = Slot;
  using difference_type = std::ptrdiff_t;
  using iterator_category = std::forward_iterator_tag;
  using pointer = const Slot*;
  using reference = const Slot&;

  Iterator() = default;

  reference operator*() const { return *at_; }
  pointer operator->() const { return at_; }
  Iterator& operator++() {
    ++at_;
    skip_to_next_leaf();
    return *this;
  }
  Iterator operator++(int) {
    auto before = *this;
    ++*this;
    return before;
  }
  // The position alone identifies an entry; the end has the position null.
  friend bool operator==(const Iterator& left, const Iterator& right) {
    return left.at_ == right.at_;
  }

 private:
  friend CowMap;

  /// Descends to a leaf by the child that `choose` returns for each branch.
  template <class Choose>
  void descend(const Node& from, const Choose& choose) {
    const auto* node = &from;
    while (const auto* branch = std::get_if<Branch>(&node->row)) {
      const auto index = choose(*branch);
      path_.push_back({branch, index});
      node = &*(*branch)[index].node;
    }
    const auto& leaf = std::get<Leaf>(node->row);
    at_ = leaf.data();
    end_ = leaf.data() + leaf.size();
  }
  /// Moves from the end of a leaf to the first entry of the next one.
  void skip_to_next_leaf() {
    while (at_ == end_ && at_ != nullptr) {
      while (!path_.empty() && path_.back().index + 1 == path_.back().branch->size()) {
        path_.pop_back();
      }
      if (path_.empty()) {
        at_ = end_ = nullptr;
        return;
      }
      const auto& next = (*path_.back().branch)[++path_.back().index];
      descend(*next.node, [](const Branch&) { return std::size_t{0}; });
    }
  }

  struct PathStep {
    const Branch* branch;
    std::size_t index;
  };
  /// Branches from the root to the current leaf. Inline, so that iteration over a tree of up to six
  /// levels of branches does not allocate.
  absl::InlinedVector<PathStep, 6> path_;
  const Slot* at_ = nullptr;
  const Slot* end_ = nullptr;  ///< End of the current leaf.
};

template <class Key, class Value, class Order>
template <class Wanted>
const Value* CowMap<Key, Value, Order>::find(const Wanted& key) const {
  if (!root_) {
    return nullptr;
  }
  const auto* node = &*root_;
  while (const auto* branch = std::get_if<Branch>(&node->row)) {
    node = &*(*branch)[child_of(*branch, key)].node;
  }
  const auto& leaf = std::get<Leaf>(node->row);
  const auto index = count_before(leaf, key);
  return has_at(leaf, index, key) ? &leaf[index].second : nullptr;
}

template <class Key, class Value, class Order>
template <class Wanted>
Value* CowMap<Key, Value, Order>::edit(const Wanted& key) {
  if (!root_) {
    return nullptr;
  }
  // One pass: copies the shared nodes of the path even if the map lacks the key.
  auto* node = &root_.edit();
  while (auto* branch = std::get_if<Branch>(&node->row)) {
    node = &(*branch)[child_of(*branch, key)].node.edit();
  }
  auto& leaf = std::get<Leaf>(node->row);
  const auto index = count_before(leaf, key);
  return has_at(leaf, index, key) ? &leaf[index].second : nullptr;
}

template <class Key, class Value, class Order>
std::vector<Key> CowMap<Key, Value, Order>::keys() const {
  std::vector<Key> all;
  std::ranges::transform(*this, std::back_inserter(all), &Slot::first);
  return all;
}

template <class Key, class Value, class Order>
auto CowMap<Key, Value, Order>::begin() const -> Iterator {
  Iterator it;
  if (root_) {
    it.descend(*root_, [](const Branch&) { return std::size_t{0}; });
    it.skip_to_next_leaf();
  }
  return it;
}

template <class Key, class Value, class Order>
template <class Wanted>
auto CowMap<Key, Value, Order>::lower_bound(const Wanted& key) const -> Iterator {
  Iterator it;
  if (root_) {
    it.descend(*root_, [&](const Branch& branch) { return child_of(branch, key); });
    it.at_ = std::partition_point(it.at_, it.end_,
                                  [&](const Slot& slot) { return Order{}(slot.first, key); });
    it.skip_to_next_leaf();
  }
  return it;
}

template <class Key, class Value, class Order>
template <class Wanted>
auto CowMap<Key, Value, Order>::upper_bound(const Wanted& key) const -> Iterator {
  auto it = lower_bound(key);
  if (it != end() && !Order{}(key, it->first)) {
    ++it;
  }
  return it;
}

template <class Key, class Value, class Order>
Value& CowMap<Key, Value, Order>::operator[](const Key& key) {
  if (!root_) {
    root_ = CowPtr(Node{});
  }
  auto inserted = insert(root_, key, Side::end);
  // The root was full: the tree grows by one level at the top, so all leaves stay equally deep.
  if (inserted.split) {
    Branch branch;
    branch.push_back({.first = {}, .node = std::move(root_)});
    branch.push_back(*std::move(inserted.split));
    root_ = CowPtr(Node{.row = std::move(branch)});
  }
  size_ += inserted.is_new ? 1 : 0;
  return *inserted.value;
}

template <class Key, class Value, class Order>
auto CowMap<Key, Value, Order>::insert(CowPtr<Node>& link, const Key& key, Side side) -> Inserted {
  return std::visit([&](auto& row) { return insert_in(row, key, side); }, link.edit().row);
}

template <class Key, class Value, class Order>
auto CowMap<Key, Value, Order>::insert_in(Leaf& leaf, const Key& key, Side side) -> Inserted {
  const auto index = count_before(leaf, key);
  if (has_at(leaf, index, key)) {
    return {.value = &leaf[index].second};
  }
  if (leaf.size() < row_max<Slot>) {
    // The common case: no node splits, and the path above stays as it is.
    return {.value = &put(leaf, index, Slot{.first = key}).second, .is_new = true};
  }
  // Ascending insertions split at the end, so that they leave full nodes and not half-full ones.
  const auto middle = side == Side::end && index == leaf.size() ? index : leaf.size() / 2;
  auto right = split(leaf, middle);
  auto& half = index > middle || right.empty() ? right : leaf;
  auto* value = &put(half, index - (&half == &leaf ? 0 : middle), Slot{.first = key}).second;
  // Copied before the move of `right`, which does not invalidate `value`.
  const auto first = right.front().first;
  return {.value = value,
          .is_new = true,
          .split = Child{.first = first, .node = CowPtr(Node{.row = std::move(right)})}};
}

template <class Key, class Value, class Order>
auto CowMap<Key, Value, Order>::insert_in(Branch& branch, const Key& key, Side side) -> Inserted {
  const auto index = child_of(branch, key);
  const auto is_last = index + 1 == branch.size();
  auto inserted = insert(branch[index].node, key, is_last ? side : Side::middle);
  if (!inserted.split) {
    return inserted;
  }
  auto fresh = *std::exchange(inserted.split, std::nullopt);
  if (branch.size() < row_max<Child>) {
    put(branch, index + 1, std::move(fresh));
    return inserted;
  }
  const auto middle = side == Side::end && is_last ? branch.size() : branch.size() / 2;
  auto right = split(branch, middle);
  auto& half = index + 1 > middle || right.empty() ? right : branch;
  put(half, index + 1 - (&half == &branch ? 0 : middle), std::move(fresh));
  const auto first = right.front().first;
  inserted.split = Child{.first = first, .node = CowPtr(Node{.row = std::move(right)})};
  return inserted;
}

template <class Key, class Value, class Order>
template <class Entry>
Entry& CowMap<Key, Value, Order>::put(std::vector<Entry>& row, std::size_t index, Entry entry) {
  if (row.size() == row.capacity()) {
    row.reserve(std::min(row_max<Entry>, row.size() + row.size() / 4 + 1));
  }
  return *row.insert(row.begin() + static_cast<std::ptrdiff_t>(index), std::move(entry));
}

/// Moves the entries from `index` on into a new row.
template <class Key, class Value, class Order>
template <class Entry>
std::vector<Entry> CowMap<Key, Value, Order>::split(std::vector<Entry>& row, std::size_t index) {
  const auto from = row.begin() + static_cast<std::ptrdiff_t>(index);
  std::vector<Entry> right(std::make_move_iterator(from), std::make_move_iterator(row.end()));
  row.erase(from, row.end());
  row.shrink_to_fit();
  return right;
}

template <class Key, class Value, class Order>
template <class Wanted>
bool CowMap<Key, Value, Order>::erase(const Wanted& key) {
  if (!root_ || !erase_from(root_, key)) {
    return false;
  }
  if (--size_ == 0) {
    root_ = {};
    return true;
  }
  // A root with one child adds a level without use: the tree shrinks at the top.
  for (const auto* branch = std::get_if<Branch>(&root_->row);
       branch != nullptr && branch->size() == 1; branch = std::get_if<Branch>(&root_->row)) {
    root_ = CowPtr<Node>(branch->front().node);
  }
  return true;
}

template <class Key, class Value, class Order>
template <class Wanted>
bool CowMap<Key, Value, Order>::erase_from(CowPtr<Node>& link, const Wanted& key) {
  auto& node = link.edit();
  if (auto* leaf = std::get_if<Leaf>(&node.row)) {
    const auto index = count_before(*leaf, key);
    if (!has_at(*leaf, index, key)) {
      return false;
    }
    remove(*leaf, index);
    return true;
  }
  auto& branch = std::get<Branch>(node.row);
  const auto index = child_of(branch, key);
  if (!erase_from(branch[index].node, key)) {
    return false;
  }
  merge_if_sparse(branch, index);
  return true;
}

/// Merges a child that is at most a quarter full into a neighbour, if both fit into half a node.
/// The gap between the two bounds avoids alternating merges and splits.
template <class Key, class Value, class Order>
void CowMap<Key, Value, Order>::merge_if_sparse(Branch& branch, std::size_t index) {
  const auto& child = *branch[index].node;
  const auto most = std::holds_alternative<Leaf>(child.row) ? row_max<Slot> : row_max<Child>;
  // An empty child is always removed, also from a branch with one child, which its own parent then
  // removes: child_of() needs branches that are not empty.
  if (size_of(child) == 0) {
    remove(branch, index);
    return;
  }
  if (size_of(child) > most / 4 || branch.size() == 1) {
    return;
  }
  const auto left = index == 0 ? 0 : index - 1;
  if (size_of(*branch[left].node) + size_of(*branch[left + 1].node) > most / 2) {
    return;
  }
  auto& into = branch[left].node.edit().row;
  auto& from = branch[left + 1].node.edit().row;
  if (auto* children = std::get_if<Branch>(&from)) {
    // The separator of the first child is undefined until the child gets a left neighbour.
    children->front().first = branch[left + 1].first;
  }
  std::visit(
      [&](auto& row) {
        auto& rest = std::get<std::remove_reference_t<decltype(row)>>(from);
        row.insert(row.end(), std::make_move_iterator(rest.begin()),
                   std::make_move_iterator(rest.end()));
      },
      into);
  remove(branch, left + 1);
}

template <class Key, class Value, class Order>
template <class Entry>
void CowMap<Key, Value, Order>::remove(std::vector<Entry>& row, std::size_t index) {
  row.erase(row.begin() + static_cast<std::ptrdiff_t>(index));
  // Erasing keeps at most about half of a row as spare capacity, so memory follows the size.
  if (row.capacity() > 2 * row.size() + 2) {
    row.shrink_to_fit();
  }
}

}  // namespace tenure::core
