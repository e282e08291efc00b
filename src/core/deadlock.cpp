#include "core/deadlock.hpp"

#include <algorithm>
#include <array>
#include <deque>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include <absl/container/btree_map.h>

#include "core/claim_index.hpp"
#include "core/deadlock_set.hpp"
#include "core/items_at.hpp"

namespace tenure::core {
namespace {

/// Whether a wait may be blocked by this item of a hold. Conservative: in a space, any wait for an
/// overlapping range counts whatever its mode, so that the search ends at the first one.
bool has_waiter(const Lock& lock, const Item& item) {
  const auto* keys = std::get_if<Keys>(&item.claim);
  return keys == nullptr ? !lock.queue().empty()
                         : !lock.ranges().queued.visit_overlapping(
                               keys->range, [](const RangeIndex::Queued&) { return false; });
}

/// Whether a wait may be blocked by this lease. A lease that blocks no wait is on no cycle, which
/// saves the search for most requests. Undefined if the budget is exceeded.
bool is_waited_for(const LockTable& table, LeaseId lease, VisitBudget& budget) {
  const auto& owned = table.owned(lease);
  const bool behind_holds = std::ranges::any_of(owned.holds, [&](FencingToken token) {
    return std::ranges::any_of(table.find(token)->items, [&](const Item& item) {
      budget.spend();
      return budget.is_exceeded() || has_waiter(*table.find(item.resource_view()), item);
    });
  });
  return behind_holds || std::ranges::any_of(owned.waits, [&](Revision ticket) {
           const auto* wait = table.find(ticket);
           return std::ranges::any_of(wait->items, [&](const Item& item) {
             budget.spend();
             return budget.is_exceeded() ||
                    table.find(item.resource_view())->queue().back() != wait->turn();
           });
         });
}

/// Breadth-first search of the wait-for graph, whose nodes are leases, optionally restricted to
/// deadlocked leases. Reads each queue once and not once per waiter: for a name it remembers, per
/// mode, how far it has read the queue; in a space it drops visited claims from an index.
///
/// The waits of `start` have their own cursors, because they skip the claims of `start`, which the
/// other waits must find.
class Search {
 public:
  Search(const LockTable& table, LeaseId start, VisitBudget& budget,
         const DeadlockSet* deadlocked = nullptr)
      : table_(table), start_(start), budget_(budget), deadlocked_(deadlocked) {}

  /// Returns a shortest cycle through `start`; empty if there is none. Undefined if the budget is
  /// exceeded.
  std::vector<Edge> run() {
    reached_.emplace(start_, Step{});
    frontier_.push_back(start_);
    while (!frontier_.empty() && !budget_.is_exceeded()) {
      const auto lease = frontier_.front();
      frontier_.pop_front();
      for (const auto ticket : table_.owned(lease).waits) {
        expand(*table_.find(ticket));
      }
    }
    return closing_ ? cycle() : std::vector<Edge>{};
  }

  /// Leases that `start` transitively waits for, and `start`.
  [[nodiscard]] std::set<LeaseId> reached() const {
    std::set<LeaseId> leases;
    for (const auto& [lease, step] : reached_) {
      leases.insert(lease);
    }
    return leases;
  }
  /// Whether the search followed a wait for permits, which other leases may release.
  [[nodiscard]] bool has_met_permits() const noexcept { return has_met_permits_; }

 private:
  /// Predecessor of a reached lease, and the edge from there. The steps form a tree, from which
  /// cycle() reads a path back to `start`.
  struct Step {
    LeaseId from{};
    Edge edge{};
  };

  /// Item of a wait, whose blockers are searched.
  struct Wanted {
    const Wait& wait;
    const Item& item;
    Resource resource;
  };

  /// Visited part of one space: [0] for the waits of `start`, [1] for all others.
  struct Space {
    std::uint64_t visits = 0;  ///< Claims visited without the index.
    std::optional<ClaimIndex> index{};
    std::array<ClaimIndex::Heads, 2> heads{};
    std::array<std::vector<bool>, 2> has_met{};  ///< Visited claims, by id.
    std::array<std::size_t, 2>
        next{};  ///< Cursor in turn order; all claims before it were visited.
  };

  /// Reaches the leases that block a wait, item by item.
  void expand(const Wait& wait) {
    for (const auto& item : wait.items) {
      if (budget_.is_exceeded()) {
        return;
      }
      budget_.spend();
      const Wanted wanted{wait, item, item.resource()};
      if (std::holds_alternative<Keys>(item.claim)) {
        expand_range(wanted);
      } else if (!std::holds_alternative<Permits>(item.claim) || is_blocked_by_permits(wanted)) {
        expand_name(wanted);
      }
    }
  }

  /// Whether a wait for permits has edges. In the second search, only waits that the graph
  /// reduction found blocked have some.
  bool is_blocked_by_permits(const Wanted& wanted) {
    has_met_permits_ = true;
    if (deadlocked_ == nullptr) {
      return true;  // conservative: DeadlockSet decides later
    }
    const auto it = deadlocked_->permit_waits.find(wanted.resource);
    return it != deadlocked_->permit_waits.end() && it->second.contains(wanted.wait.ticket);
  }

  [[nodiscard]] bool is_of_start(const Wanted& wanted) const { return wanted.wait.lease == start_; }

  /// Reaches the blockers of a wait at a name. A wait with the same mode has the same blockers
  /// among the claims ahead of both, so only the part behind its cursor is read.
  void expand_name(const Wanted& wanted) {
    const auto& lock = *table_.find(wanted.resource);
    const auto turn = wanted.wait.turn();
    const auto [seen, is_first] = seen_.try_emplace(Queue{.resource = wanted.resource,
                                                          .mode = mode_of(wanted.item),
                                                          .is_of_start = is_of_start(wanted)},
                                                    turn);
    if (!is_first && turn <= seen->second) {
      return;
    }
    auto from = is_first ? lock.queue().begin() : lock.queue().lower_bound(seen->second);
    seen->second = turn;
    // The holders block every wait of this mode alike, so one pass over them suffices.
    if (is_first) {
      for (const auto token : lock.holds()) {
        const auto& hold = *table_.find(token);
        reach_if_blocking(hold.lease, hold.items, wanted);
        if (budget_.is_exceeded()) {
          return;
        }
      }
    }
    const auto to = lock.queue().lower_bound(turn);
    for (; from != to && !budget_.is_exceeded(); ++from) {
      const auto& other = *table_.find(from->ticket);
      reach_if_blocking(other.lease, other.items, wanted);
    }
  }

  /// Mode of the wait; nothing for permits.
  static std::optional<LockMode> mode_of(const Item& item) {
    const auto* whole = std::get_if<Whole>(&item.claim);
    return whole == nullptr ? std::nullopt : std::optional(whole->mode);
  }

  /// Reaches the lease of a hold or wait, if one of its items conflicts with the wanted item.
  void reach_if_blocking(LeaseId lease, std::span<const Item> items, const Wanted& wanted) {
    budget_.spend();
    const bool blocks =
        std::ranges::any_of(items_at(items, wanted.resource), [&](const Item& item) {
          return std::holds_alternative<Permits>(item.claim) ||
                 conflict(item.claim, wanted.item.claim);
        });
    if (blocks) {
      reach(lease, wanted);
    }
  }

  /// Building an index costs more than one search, so it is built only after the searches before
  /// have visited as many claims as the index would contain.
  void expand_range(const Wanted& wanted) {
    const auto& ranges = table_.find(wanted.resource)->ranges();
    auto& space = spaces_[wanted.resource];
    const auto size = ranges.held.size() + ranges.queued.size();
    if (space.visits < size) {
      expand_overlapping(wanted, ranges, space);
      return;
    }
    if (!space.index) {
      budget_.spend(size);
      if (budget_.is_exceeded()) {
        return;
      }
      // Claims of leases that were reached before add nothing to a breadth-first search. Those of
      // `start` stay listed, because they close the cycle.
      space.index.emplace(ranges, [&](const ClaimIndex::Claim& claim) {
        const auto lease = lease_of(claim);
        return lease == start_ || !reached_.contains(lease);
      });
      space.heads.fill(space.index->heads());
      space.has_met.fill(std::vector<bool>(size));
    }
    expand_indexed(wanted, space);
  }

  void expand_overlapping(const Wanted& wanted, const RangeIndex& ranges, Space& space) {
    const auto& keys = std::get<Keys>(wanted.item.claim);
    const auto count = [&] {
      ++space.visits;
      budget_.spend();
      return !budget_.is_exceeded();
    };
    ranges.held.visit_overlapping(keys.range, [&](const RangeIndex::Held& held) {
      if (!compatible_with(held.mode, keys.mode)) {
        reach(table_.find(held.token)->lease, wanted);
      }
      return count();
    });
    ranges.queued.visit_overlapping(keys.range, [&](const RangeIndex::Queued& queued) {
      if (queued.turn < wanted.wait.turn() && !compatible_with(queued.mode, keys.mode)) {
        reach(table_.find(queued.turn.ticket)->lease, wanted);
      }
      return count();
    });
  }

  /// Same result as expand_overlapping(), without the leases that were reached before.
  void expand_indexed(const Wanted& wanted, Space& space) {
    const auto& keys = std::get<Keys>(wanted.item.claim);
    const auto side = is_of_start(wanted) ? 0U : 1U;
    if (!has_unmet(space, side, wanted.wait.turn())) {
      return;
    }
    std::vector<ClaimIndex::Id> met;
    const ClaimIndex::Query query{
        .turn = wanted.wait.turn(), .mode = keys.mode, .span = space.index->span_of(keys.range)};
    space.index->visit_blocking(query, space.heads[side], [&](ClaimIndex::Id id) {
      if (!space.has_met[side][id]) {
        space.has_met[side][id] = true;
        met.push_back(id);
      }
      return ClaimIndex::Next::drop;
    });
    budget_.spend(met.size());
    // By id, which is the order of expand_overlapping(): the found cycle does not depend on whether
    // the index exists.
    std::ranges::sort(met);
    for (const auto id : met) {
      reach(lease_of((*space.index)[id]), wanted);
    }
  }

  /// Whether a claim ahead of this turn was not visited yet.
  static bool has_unmet(Space& space, std::size_t side, const Turn& turn) {
    const auto order = space.index->in_turn_order();
    auto& next = space.next[side];
    while (next < order.size() && space.has_met[side][order[next]]) {
      ++next;
    }
    return next < order.size() && (*space.index)[order[next]].turn < turn;
  }

  [[nodiscard]] LeaseId lease_of(const ClaimIndex::Claim& claim) const {
    return claim.token == FencingToken{} ? table_.find(claim.turn.ticket)->lease
                                         : table_.find(claim.token)->lease;
  }

  /// Adds a lease to the frontier at its first visit; records the first edge back to `start`.
  void reach(LeaseId lease, const Wanted& wanted) {
    if (lease == wanted.wait.lease ||
        (deadlocked_ != nullptr && !deadlocked_->leases.contains(lease))) {
      return;
    }
    const Step step{.from = wanted.wait.lease,
                    .edge = {.ticket = wanted.wait.ticket, .resource = wanted.resource}};
    if (lease != start_) {
      if (reached_.emplace(lease, step).second) {
        frontier_.push_back(lease);
      }
    } else if (!closing_) {
      closing_ = step;
    }
  }

  [[nodiscard]] std::vector<Edge> cycle() const {
    std::vector<Edge> edges{closing_->edge};
    // From the edge that closes the cycle back to `start`; reversed, it begins with a wait of
    // `start`.
    for (auto at = closing_->from; at != start_;) {
      const auto& step = reached_.at(at);
      edges.push_back(step.edge);
      at = step.from;
    }
    std::ranges::reverse(edges);
    return edges;
  }

  /// Key of a cursor in the queue of a name.
  struct Queue {
    Resource resource;
    std::optional<LockMode> mode;
    bool is_of_start = false;

    friend auto operator<=>(const Queue&, const Queue&) = default;
  };

  /// Searched lock table; it does not change during the search.
  const LockTable& table_;
  /// Lease that the cycle must contain.
  LeaseId start_;
  VisitBudget& budget_;
  /// Restricts the search to these leases; null: no restriction.
  const DeadlockSet* deadlocked_;
  /// Reached leases with their predecessors.
  absl::btree_map<LeaseId, Step> reached_;
  /// Reached leases that were not expanded yet, in order of distance from `start`.
  std::deque<LeaseId> frontier_;
  std::map<Queue, Turn> seen_;  ///< Cursors: first turn that was not visited.
  std::map<Resource, Space> spaces_;
  /// First edge that leads back to `start`. Breadth-first order makes its cycle a shortest one.
  std::optional<Step> closing_;
  bool has_met_permits_ = false;
};

}  // namespace

std::optional<std::vector<Edge>> find_cycle(const LockTable& table, LeaseId start, Visits& visits,
                                            std::uint64_t visits_max) {
  VisitBudget budget(visits, visits_max);
  // An exceeded budget counts as waited for, and the search below then reports it.
  if (!is_waited_for(table, start, budget)) {
    return std::vector<Edge>{};
  }
  Search search(table, start, budget);
  auto cycle = search.run();
  if (budget.is_exceeded()) {
    return std::nullopt;
  }
  if (cycle.empty() || !search.has_met_permits()) {
    return cycle;
  }
  // With permits, a cycle does not prove a deadlock: a lease outside of it may release some.
  const auto deadlocked = find_deadlocked(table, search.reached(), budget);
  if (!deadlocked) {
    return std::nullopt;
  }
  if (!deadlocked->leases.contains(start)) {
    return std::vector<Edge>{};
  }
  // The first search may have followed waits for permits that other leases will release. The second
  // one stays among deadlocked leases, so its cycle is a real one.
  cycle = Search(table, start, budget, &*deadlocked).run();
  return budget.is_exceeded() ? std::nullopt : std::optional(std::move(cycle));
}

std::vector<CycleStep> describe(const LockTable& table, const std::vector<Edge>& cycle) {
  std::vector<CycleStep> steps;
  for (const auto& edge : cycle) {
    const auto& wait = *table.find(edge.ticket);
    steps.push_back({.lease = wait.lease,
                     .request = wait.request,
                     .owner = wait.owner,
                     .resource = edge.resource});
  }
  return steps;
}

}  // namespace tenure::core
