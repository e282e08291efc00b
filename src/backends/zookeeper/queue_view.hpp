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

/// One node that we want to have, or have. 0 is none.
using ClaimId = Strong<std::uint64_t, struct ClaimIdTag>;

/// What a session knows of the queue in one folder, so that it need not list it again and again.
///
/// INVARIANT: of the nodes up to `covered`, a number that the folder's counter gave to us, those
/// that are there are in the view. The view may have nodes that have gone meanwhile, others' only:
/// so who has nobody in his way here has nobody in his way.
///
/// It is worth something only while the folder stays the same one: numbers begin anew in a new
/// folder. Whoever uses it sees to that, and forgets all if in doubt.
class QueueView {
 public:
  struct Contender {
    std::string node{};
    Ticket ticket{};
    ClaimId ours{};  ///< 0: somebody else's.
  };

  /// The view has all nodes up to this one.
  [[nodiscard]] bool covers(Sequence sequence) const noexcept;
  /// There is something to go on with: the next node may be the next number.
  [[nodiscard]] bool is_usable() const noexcept { return covered_.has_value(); }
  [[nodiscard]] bool empty() const noexcept { return contenders_.empty(); }
  [[nodiscard]] std::size_t size() const noexcept { return contenders_.size(); }

  /// A node of ours was created.
  void add(const Contender& contender);
  /// All names that there are; others than those of queues count for nothing. Ours stay ours.
  void replace(const std::vector<std::string_view>& names);
  /// It is gone. False: it was not known.
  bool remove(std::string_view node);
  /// Our nodes stay; all else is unknown.
  void forget();

  [[nodiscard]] const Contender* find(std::string_view node) const;
  /// Whom it has to wait for: the last one before it that it cannot be beside. Null: it may go.
  [[nodiscard]] const Contender* blocker_of(const Contender& one) const;
  /// Somebody that one who comes now could not be beside. Null: nobody.
  [[nodiscard]] const Contender* conflicting_with(Kind kind) const;
  /// How many wait in front of it, and itself.
  [[nodiscard]] std::size_t position_of(const Contender& one) const;

  /// All of ours, the first in the queue first.
  [[nodiscard]] std::vector<ClaimId> ours() const;
  /// Ours that waited for this one, which is no longer there: behind it, up to the first that wants
  /// all; only that one, if this one did not want all.
  [[nodiscard]] std::vector<ClaimId> waiters_of(const Ticket& ticket) const;

 private:
  /// Seen from one of ours, so that it is an order whatever numbers others write by hand.
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

  template <class Predicate>
  void drop_if(Predicate is_gone);
  void reorder_from(Sequence origin);
  void enqueue(const Contender& one);
  void dequeue(const Contender& one);

  std::map<std::string, Contender, std::less<>> contenders_;
  Order order_;
  Order exclusive_;  ///< Those in it that want all.
  std::optional<Sequence> covered_;
  std::size_t ours_ = 0;
};

}  // namespace tenure::backends::zookeeper
