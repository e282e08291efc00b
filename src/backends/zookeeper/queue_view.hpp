#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <absl/container/btree_set.h>

#include <tenure/strong.hpp>

#include "backends/zookeeper/nodes.hpp"

namespace tenure::backends::zookeeper {

/// Id of a node that this client wants or has; 0: none.
using ClaimId = Strong<std::uint64_t, struct ClaimIdTag>;

/// Cached view of the queue in one folder, which avoids listing it for every operation.
///
/// INVARIANT: every existing node up to `covered`, a number that the folder's counter assigned to
/// this client, is in the view. The view may contain deleted nodes of other clients, so a node
/// without a conflict in the view has none at the servers.
///
/// The view is valid only for one incarnation of the folder, because sequence numbers restart in a
/// new folder. The owner detects that, and forgets everything if in doubt. Not thread safe.
class QueueView {
 public:
  struct Contender {
    std::string node{};
    Ticket ticket{};
    /// Claim of this client; 0: a node of another client.
    ClaimId ours{};
  };

  /// Whether the view contains every node up to this one.
  [[nodiscard]] bool covers(Sequence sequence) const noexcept;
  /// Whether the next sequence number can extend the view without a list.
  [[nodiscard]] bool is_usable() const noexcept { return covered_.has_value(); }
  [[nodiscard]] bool empty() const noexcept { return contenders_.empty(); }
  [[nodiscard]] std::size_t size() const noexcept { return contenders_.size(); }

  /// Adds a created node of this client.
  void add(const Contender& contender);
  /// Replaces the view by a full list. Names that are not queue nodes are ignored; claims of this
  /// client are kept.
  void replace(const std::vector<std::string_view>& names);
  /// Removes a deleted node. Returns false if it was unknown.
  bool remove(std::string_view node);
  /// Forgets all nodes of other clients.
  void forget();

  [[nodiscard]] const Contender* find(std::string_view node) const;
  /// Last conflicting predecessor; null: the node is granted.
  [[nodiscard]] const Contender* blocker_of(const Contender& one) const;
  /// Any node that conflicts with a new node of this kind; null: none.
  [[nodiscard]] const Contender* conflicting_with(Kind kind) const;
  /// Position among the waiters, counted from 1.
  [[nodiscard]] std::size_t position_of(const Contender& one) const;

  /// Claims of this client in queue order.
  [[nodiscard]] std::vector<ClaimId> ours() const;
  /// Claims of this client to re-evaluate after the deletion of `ticket`: the ones behind it, up to
  /// the first exclusive one; only that one, if `ticket` was shared.
  [[nodiscard]] std::vector<ClaimId> waiters_of(const Ticket& ticket) const;

 private:
  /// Order by distance from an own node: a strict order for any numbers, also for numbers written
  /// by hand.
  struct Earlier {
    using is_transparent = void;
    Sequence origin;

    [[nodiscard]] std::int32_t rank(Sequence one) const noexcept { return distance(origin, one); }
    [[nodiscard]] bool operator()(const Contender* a, const Contender* b) const noexcept {
      return a->ticket.sequence == b->ticket.sequence
                 ? a->node < b->node
                 : rank(a->ticket.sequence) < rank(b->ticket.sequence);
    }
    [[nodiscard]] bool operator()(const Contender* a, Sequence b) const noexcept {
      return rank(a->ticket.sequence) < rank(b);
    }
    [[nodiscard]] bool operator()(Sequence a, const Contender* b) const noexcept {
      return rank(a) < rank(b->ticket.sequence);
    }
  };

  using Order = absl::btree_set<const Contender*, Earlier>;

  /// Removes all nodes that satisfy a predicate.
  template <class Predicate>
  void drop_if(Predicate is_gone);
  void reorder_from(Sequence origin);
  /// Adds a node to the orders.
  void enqueue(const Contender& one);
  /// Removes a node from the orders.
  void dequeue(const Contender& one);

  /// Known nodes by name. The orders point into it.
  std::map<std::string, Contender, std::less<>> contenders_;
  /// All nodes in queue order.
  Order order_;
  /// Exclusive nodes in queue order.
  Order exclusive_;
  /// Newest number up to which the view is complete; empty: not known.
  std::optional<Sequence> covered_;
  /// Number of nodes of this client.
  std::size_t ours_ = 0;
};

}  // namespace tenure::backends::zookeeper
