#include "core/stuck.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "core/claim_index.hpp"
#include "core/items_at.hpp"

namespace tenure::core {
namespace {

/// Graph reduction: assumes that all leases that wait are stuck, and removes those that can go on
/// until none is left. Looks again only at places where a lease was removed, in rounds, so that one
/// look serves all removals of the round before.
class Reduction {
 public:
  Reduction(const LockTable& table, const std::set<LeaseId>& among, VisitBudget& budget)
      : table_(table), budget_(budget) {
    for (const auto lease : among) {
      for (const auto ticket : table.owned(lease).waits) {
        suspect(*table.find(ticket));
      }
    }
  }

  std::optional<Stuck> run() && {
    while (!open_.empty()) {
      for (const auto& place : std::exchange(open_, {})) {
        open_.erase(place);
        const auto& lock = *table_.find(place);
        budget_.spend(lock.holds().size() + lock.queue().size());
        if (budget_.is_exceeded()) {
          return std::nullopt;
        }
        if (place.kind == PlaceKind::space) {
          look_at_ranges(place, lock);
        } else {
          look_at_counts(place, lock);
        }
      }
    }
    return std::move(stuck_);
  }

 private:
  void suspect(const Wait& wait) {
    budget_.spend(wait.items.size());
    stuck_.leases.insert(wait.lease);
    for (const auto& item : wait.items) {
      open_.insert(item.place());
      blocked_at_[wait.lease].insert(item.place());
    }
  }

  /// What the stuck ones hold at a name and, as the queue is followed, wait for.
  struct Taken {
    Load all;
    std::map<LeaseId, Load> each;

    void add(LeaseId lease, const Claim& claim) {
      all.add(claim);
      each[lease].add(claim);
    }
    /// All but what this lease has, and that.
    [[nodiscard]] std::pair<Load, Load> apart(LeaseId lease) const {
      const auto it = each.find(lease);
      const auto own = it == each.end() ? Load{} : it->second;
      return {all.without(own), own};
    }
    void forget(LeaseId lease) {
      all = apart(lease).first;
      each.erase(lease);
    }
  };

  static const Claim& claim_at(std::span<const Item> items, const Place& place) {
    return items_at(items, place).front().claim;
  }

  static bool is_blocked(const Claim& claim, LeaseId lease, const Taken& taken) {
    const auto [others, own] = taken.apart(lease);
    const auto* permits = std::get_if<Permits>(&claim);
    if (permits == nullptr) {
      return !others.admits(std::get<Whole>(claim).mode);
    }
    // One who is only in his own way asked to be: somebody who shares the lease gives back some.
    const std::uint64_t kept =
        std::min<std::uint64_t>(own.permits, permits->capacity - permits->wanted);
    return kept + others.permits + permits->wanted > permits->capacity;
  }

  void look_at_counts(const Place& place, const Lock& lock) {
    Taken taken;
    for (const auto token : lock.holds()) {
      const auto& hold = *table_.find(token);
      if (stuck_.leases.contains(hold.lease)) {
        taken.add(hold.lease, claim_at(hold.items, place));
      }
    }
    stuck_.starving.erase(place);
    std::set<LeaseId> waiting;
    std::set<LeaseId> blocked;
    for (const auto& turn : lock.queue()) {
      const auto& wait = *table_.find(turn.ticket);
      if (!stuck_.leases.contains(wait.lease)) {
        continue;
      }
      waiting.insert(wait.lease);
      const auto& claim = claim_at(wait.items, place);
      if (is_blocked(claim, wait.lease, taken)) {
        blocked.insert(wait.lease);
        note_starving(place, wait, claim);
      } else if (is_blocked_only_at(place, wait.lease)) {
        // At once and not at the end, so that one look lets a whole queue go.
        taken.forget(wait.lease);
        unblock(wait.lease, place);
        continue;
      }
      taken.add(wait.lease, claim);
    }
    unblock_all(waiting, blocked, place);
  }

  void note_starving(const Place& place, const Wait& wait, const Claim& claim) {
    if (std::holds_alternative<Permits>(claim)) {
      stuck_.starving[place].insert(wait.ticket);
    }
  }

  /// It has one wait, and no other place of it is still in doubt.
  [[nodiscard]] bool is_blocked_only_at(const Place& place, LeaseId lease) const {
    const auto& places = blocked_at_.at(lease);
    return table_.owned(lease).waits.size() == 1 && places.size() == 1 && places.contains(place);
  }

  /// The claims of one space, of which those of leases that are not stuck get dropped.
  struct Space {
    ClaimIndex index;
    ClaimIndex::Heads heads;
  };

  void look_at_ranges(const Place& place, const Lock& lock) {
    auto& space = space_of(place, lock);
    std::set<LeaseId> waiting;
    std::set<LeaseId> blocked;
    for (const auto& turn : lock.queue()) {
      const auto& wait = *table_.find(turn.ticket);
      if (!stuck_.leases.contains(wait.lease)) {
        continue;
      }
      waiting.insert(wait.lease);
      const bool may_go = std::ranges::all_of(space.index.of_turn(turn), [&](ClaimIndex::Id id) {
        return is_free(space, space.index[id], wait.lease);
      });
      if (!may_go) {
        blocked.insert(wait.lease);
      }
    }
    unblock_all(waiting, blocked, place);
  }

  Space& space_of(const Place& place, const Lock& lock) {
    const auto it = spaces_.find(place);
    if (it != spaces_.end()) {
      return it->second;
    }
    ClaimIndex index(lock.ranges());
    auto heads = index.heads();
    return spaces_.emplace(place, Space{std::move(index), std::move(heads)}).first->second;
  }

  /// Nothing of another stuck lease is held there, or waited for ahead of this claim.
  bool is_free(Space& space, const ClaimIndex::Claim& claim, LeaseId lease) {
    return space.index.visit_blocking(
        ClaimIndex::query_of(claim), space.heads, [&](ClaimIndex::Id id) {
          budget_.spend();
          const auto other = lease_of(space.index[id]);
          if (!stuck_.leases.contains(other)) {
            return ClaimIndex::Next::drop;
          }
          return other == lease ? ClaimIndex::Next::keep : ClaimIndex::Next::stop;
        });
  }

  [[nodiscard]] LeaseId lease_of(const ClaimIndex::Claim& claim) const {
    return claim.token == FencingToken{} ? table_.find(claim.turn.ticket)->lease
                                         : table_.find(claim.token)->lease;
  }

  void unblock_all(const std::set<LeaseId>& waiting, const std::set<LeaseId>& blocked,
                   const Place& place) {
    for (const auto lease : waiting) {
      if (!blocked.contains(lease) && stuck_.leases.contains(lease)) {
        unblock(lease, place);
      }
    }
  }

  void unblock(LeaseId lease, const Place& place) {
    auto& places = blocked_at_.at(lease);
    places.erase(place);
    if (!places.empty()) {
      return;
    }
    stuck_.leases.erase(lease);
    const auto& owned = table_.owned(lease);
    budget_.spend(owned.items);
    for (const auto token : owned.holds) {
      open(table_.find(token)->items);
    }
    for (const auto ticket : owned.waits) {
      open(table_.find(ticket)->items);
    }
  }

  void open(std::span<const Item> items) {
    for (const auto& item : items) {
      auto place = item.place();
      if (!table_.find(place)->queue().empty()) {
        open_.insert(std::move(place));
      }
    }
  }

  const LockTable& table_;
  VisitBudget& budget_;
  Stuck stuck_;
  std::map<LeaseId, std::set<Place>> blocked_at_;
  std::map<Place, Space> spaces_;
  std::set<Place> open_;  ///< To look at in the next round.
};

}  // namespace

std::optional<Stuck> find_stuck(const LockTable& table, const std::set<LeaseId>& among,
                                VisitBudget& budget) {
  return Reduction(table, among, budget).run();
}

Stuck find_stuck(const LockTable& table) {
  std::set<LeaseId> all;
  for (const auto& [lease, owned] : table.owners()) {
    all.insert(lease);
  }
  Visits visits;
  VisitBudget unlimited(visits, std::numeric_limits<std::uint64_t>::max());
  return *find_stuck(table, all, unlimited);
}

}  // namespace tenure::core
