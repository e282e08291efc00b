#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <tenure/key_range.hpp>
#include <tenure/lock_mode.hpp>

#include "core/ids.hpp"
#include "core/range_index.hpp"
#include "core/turn_queue.hpp"

namespace tenure::core {

/// Turn of a hold: precedes that of every wait, because a hold blocks all of them.
inline constexpr Turn turn_of_holds{.rank = Rank::upgrade, .ticket = Revision{}};

/// Static index of the held and awaited ranges of one space. Finds the claims that block a wait:
/// those that overlap its range, precede its turn and are incompatible with its mode. An
/// IntervalTree cannot skip the claims behind the wait, which would make n searches in one queue
/// quadratic.
///
/// A segment tree over the starts of the ranges (two ranges overlap when one has the start of the
/// other). A claim is listed in the O(log n) nodes that it covers (`covered`), and in all nodes
/// above these (`touched`); it overlaps a query when one of its nodes is a node of the query, or
/// above or below one. Lists are in the order of turns, so claims ahead come first. Needs
/// O(n log n) time and memory to build, and O(log n) time for a query without results. Not thread
/// safe.
class ClaimIndex {
 public:
  using Id = std::uint32_t;

  /// Closed interval of positions in the sorted starts.
  struct Span {
    std::uint32_t first = 0;
    std::uint32_t last = 0;
  };
  struct Claim {
    Turn turn = turn_of_holds;
    FencingToken token{};  ///< Token of a hold; 0 for a wait.
    LockMode mode{};
    Span span{};
  };
  /// A wait that may be blocked.
  struct Query {
    Turn turn{};
    LockMode mode{};
    Span span{};
  };

  /// Cursor in each list: entries before it were dropped. Searches that drop different claims need
  /// cursors of their own.
  using Heads = std::vector<std::uint32_t>;

  using Filter = std::function<bool(const Claim&)>;

  /// Ids are in the order of IntervalTree, holds before waits. Claims that `is_listed` rejects have
  /// ids, but are never found; by default all are listed. Their spans are not known to it.
  explicit ClaimIndex(const RangeIndex& ranges, const Filter& is_listed = nullptr);
  /// Claims of one name, all of which overlap. Ids are their positions.
  explicit ClaimIndex(std::vector<Claim> claims);

  /// Number of ids.
  [[nodiscard]] std::size_t size() const noexcept { return claims_.size(); }
  /// Ids of all listed claims, by turn.
  [[nodiscard]] std::span<const Id> in_turn_order() const noexcept { return by_turn_; }
  [[nodiscard]] const Claim& operator[](Id id) const { return claims_[id]; }
  [[nodiscard]] Heads heads() const { return {offsets_.begin(), offsets_.end() - 1}; }

  /// Claims of a wait; empty if it has none in this space.
  [[nodiscard]] std::span<const Id> of_turn(const Turn& turn) const;
  [[nodiscard]] static Query query_of(const Claim& claim) {
    return {.turn = claim.turn, .mode = claim.mode, .span = claim.span};
  }
  /// REQUIRES: the indexed ranges have not changed, and the start of `range` is among them.
  [[nodiscard]] Span span_of(const BytesRange& range) const {
    return span_of(range.start(), range.end());
  }

  enum class Next : std::uint8_t {
    drop,  ///< Continue, and never visit this entry with these heads again.
    keep,  ///< Continue.
    stop,  ///< End the search.
  };
  /// Calls visit(id) for each claim that blocks the query, until it returns `stop`; then returns
  /// false. A claim is visited once for each of its lists.
  template <class Visit>
  // NOLINTNEXTLINE(modernize-use-nodiscard): a visit that never stops needs no result
  bool visit_blocking(const Query& query, Heads& heads, Visit&& visit) const;

  /// Number of a list. A list has claims of one mode, in the order of turns.
  using ListId = std::size_t;
  [[nodiscard]] std::size_t list_count() const noexcept { return offsets_.size() - 1; }
  [[nodiscard]] std::span<const Id> claims_of(ListId list) const {
    return std::span(entries_).subspan(offsets_[list], offsets_[list + 1] - offsets_[list]);
  }
  /// Calls visit(list) for the lists of a claim.
  template <class Visit>
  void visit_lists_of(const Claim& claim, const Visit& visit) const;
  /// Calls visit(list) for the lists whose claims block the query if they precede it, until it
  /// returns false; then returns false.
  template <class Visit>
  [[nodiscard]] bool visit_blocking_lists(const Query& query, const Visit& visit) const;

 private:
  enum class List : std::uint8_t { covered, touched };

  struct Node {
    std::uint32_t number = 1;  ///< Heap order: 1 is the root, the children of n are 2n and 2n + 1.
    Span span{};
  };

  template <class OnNode>
  bool walk(const Span& span, const OnNode& on_node) const;
  /// Visits the claims of one list ahead of the query.
  template <class Visit>
  bool visit_list(ListId list, const Query& query, Heads& heads, Visit& visit) const;
  [[nodiscard]] ListId list_of(std::uint32_t node, List kind, LockMode mode) const {
    return (node * 2UL + static_cast<std::size_t>(kind)) * modes_.size() +
           slots_[static_cast<std::size_t>(mode)];
  }
  /// Positions of the starts inside the range. REQUIRES: `start` is one of them.
  [[nodiscard]] Span span_of(const std::string& start, const std::optional<std::string>& end) const;
  /// Collects the claims and the distinct starts of a space, and the spans of the listed claims.
  void collect(const RangeIndex& ranges, const Filter& is_listed);
  /// Collects the modes in use.
  void count_modes();
  /// Sorts by_turn_; claims of one turn by id, so that the order is the same on every member.
  void sort_by_turn();
  /// Distributes the listed claims to the lists of their nodes.
  void fill_lists();

  std::vector<const std::string*> starts_;  ///< Distinct starts of all claims, ascending.
  std::uint32_t width_ = 1;                 ///< Leaves of the tree, a power of two.
  /// All claims, by id.
  std::vector<Claim> claims_;
  /// Ids of the listed claims, by turn.
  std::vector<Id> by_turn_;
  /// Distinct modes of the claims. Other modes have no lists, which saves memory.
  std::vector<LockMode> modes_;
  std::array<std::size_t, all_lock_modes.size()> slots_{};  ///< Position in modes_, by mode.
  std::vector<std::uint32_t>
      offsets_;  ///< Start of each list in entries_, then the size of entries_.
  /// Ids of all lists in one array.
  std::vector<Id> entries_;
};

/// Calls on_node(node, is_inside) for all nodes that meet the span, from the root down to the nodes
/// inside it, until it returns false.
template <class OnNode>
bool ClaimIndex::walk(const Span& span, const OnNode& on_node) const {
  std::array<Node, 34> stack;  // two more than the height, which is at most 32
  std::size_t depth = 0;
  stack[depth++] = {.span = {.first = 0, .last = width_ - 1}};
  while (depth > 0) {
    const auto node = stack[--depth];
    const bool is_inside = span.first <= node.span.first && node.span.last <= span.last;
    if (!on_node(node.number, is_inside)) {
      return false;
    }
    if (is_inside) {
      continue;
    }
    const auto middle = node.span.first + ((node.span.last - node.span.first) / 2);
    if (span.last > middle) {
      stack[depth++] = {.number = (2 * node.number) + 1,
                        .span = {.first = middle + 1, .last = node.span.last}};
    }
    if (span.first <= middle) {
      stack[depth++] = {.number = 2 * node.number,
                        .span = {.first = node.span.first, .last = middle}};
    }
  }
  return true;
}

template <class Visit>
bool ClaimIndex::visit_blocking(const Query& query, Heads& heads, Visit&& visit) const {
  return visit_blocking_lists(query,
                              [&](ListId list) { return visit_list(list, query, heads, visit); });
}

template <class Visit>
bool ClaimIndex::visit_blocking_lists(const Query& query, const Visit& visit) const {
  return walk(query.span, [&](std::uint32_t node, bool is_inside) {
    for (const auto mode : modes_) {
      if (compatible_with(mode, query.mode)) {
        continue;
      }
      // At a node that is not inside the span, only claims that cover the whole node are sure to
      // overlap the query. At a node inside it, every claim at the node or below it overlaps.
      if (!visit(list_of(node, List::covered, mode)) ||
          (is_inside && !visit(list_of(node, List::touched, mode)))) {
        return false;
      }
    }
    return true;
  });
}

template <class Visit>
void ClaimIndex::visit_lists_of(const Claim& claim, const Visit& visit) const {
  (void)walk(claim.span, [&](std::uint32_t node, bool is_inside) {
    visit(list_of(node, is_inside ? List::covered : List::touched, claim.mode));
    return true;
  });
}

template <class Visit>
bool ClaimIndex::visit_list(ListId list, const Query& query, Heads& heads, Visit& visit) const {
  for (auto at = heads[list]; at < offsets_[list + 1]; ++at) {
    const auto id = entries_[at];
    // The rest of the list is behind the query.
    if (!(claims_[id].turn < query.turn)) {
      break;
    }
    const auto next = visit(id);
    if (next == Next::stop) {
      return false;
    }
    // Only a prefix can be dropped. An entry behind a kept one stays, and is visited again.
    if (next == Next::drop && at == heads[list]) {
      ++heads[list];
    }
  }
  return true;
}

}  // namespace tenure::core
