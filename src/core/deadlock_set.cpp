#include "core/deadlock_set.hpp"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "core/blocked_claims.hpp"
#include "core/items_at.hpp"
#include "core/threshold_tree.hpp"

namespace tenure::core {
namespace {

/// Decremental index of the waits for permits of one semaphore: which of them are blocked by other
/// deadlocked leases, while the reduction removes leases.
///
/// A wait is blocked while the permits that deadlocked leases hold or want ahead of it, plus its
/// own, exceed the capacity. Permits that its own lease holds ahead of it never become free for it,
/// so their excess over the capacity does not count.
class BlockedPermits {
 public:
  explicit BlockedPermits(std::uint32_t capacity) : capacity_(capacity) {}

  /// REQUIRES: all holds are added first, then all waits in the order of their turns.
  void add_hold(LeaseId lease, const Permits& permits) {
    ahead_ += permits.wanted;
    own_[lease] += permits.wanted;
  }
  void add_wait(const Wait& wait, const Permits& permits) {
    // Together with the permits of its own lease, a wait may exceed the capacity. The threshold
    // rises by that excess, so that only permits of other leases decide.
    const auto own = own_[wait.lease];
    const auto own_excess = std::max<std::int64_t>(0, own + permits.wanted - capacity_);
    row_.push_back({.number = std::exchange(ahead_, permits.wanted),
                    .threshold = capacity_ - permits.wanted + own_excess});
    waits_.push_back({.turn = wait.turn(), .lease = wait.lease});
    own_[wait.lease] = own + permits.wanted;
  }

  /// Builds the index. Returns the lease of each blocked wait.
  [[nodiscard]] std::vector<LeaseId> begin() {
    tree_ = ThresholdTree(row_);
    static_cast<void>(take_freed());
    std::vector<LeaseId> blocked;
    for (const auto& wait : waits_) {
      if (wait.is_blocked) {
        blocked.push_back(wait.lease);
      }
    }
    return blocked;
  }
  /// Removes permits whose lease is not deadlocked any more. Returns the lease of each wait that
  /// became unblocked.
  [[nodiscard]] std::vector<LeaseId> remove_hold(const Permits& permits) {
    // Position 0 counts the permits ahead of the first wait, which are those of the holds.
    tree_.subtract(0, permits.wanted);
    return take_freed();
  }
  [[nodiscard]] std::vector<LeaseId> remove_wait(const Turn& turn, const Permits& permits) {
    const auto it = std::ranges::lower_bound(waits_, turn, {}, &Blocked::turn);
    // Number n + 1 of the sequence has the permits of wait n, because they block the waits behind
    // it only.
    tree_.subtract(static_cast<std::size_t>(it - waits_.begin()) + 1, permits.wanted);
    return take_freed();
  }

  [[nodiscard]] std::set<Revision> blocked() const {
    std::set<Revision> tickets;
    for (const auto& wait : waits_) {
      if (wait.is_blocked) {
        tickets.insert(wait.turn.ticket);
      }
    }
    return tickets;
  }

 private:
  struct Blocked {
    /// Position in the queue.
    Turn turn{};
    LeaseId lease{};
    bool is_blocked = true;
  };

  /// Marks the waits that became unblocked, and returns their leases.
  std::vector<LeaseId> take_freed() {
    std::vector<LeaseId> freed;
    while (const auto position = tree_.take()) {
      waits_[*position].is_blocked = false;
      freed.push_back(waits_[*position].lease);
    }
    return freed;
  }

  /// Permits of the semaphore.
  std::int64_t capacity_;
  std::int64_t ahead_ = 0;               ///< Permits between the last wait and the next one.
  std::map<LeaseId, std::int64_t> own_;  ///< Permits of each lease ahead of the next wait.
  std::vector<ThresholdTree::Position> row_;
  std::vector<Blocked> waits_;  ///< Waits by turn, with the positions of the tree.
  ThresholdTree tree_{{}};
};

/// Graph reduction: assumes that all waiting leases are deadlocked, and removes runnable ones until
/// none is left. Each resource has an index in which a removal finds the waits that it unblocks, so
/// each claim is visited twice: when the index is built, and when its lease is removed.
class Reduction {
 public:
  Reduction(const LockTable& table, const std::set<LeaseId>& among, VisitBudget& budget)
      : table_(table), budget_(budget) {
    for (const auto lease : among) {
      const auto& waits = table.owned(lease).waits;
      if (!waits.empty()) {
        deadlocked_.leases.insert(lease);
      }
      for (const auto ticket : waits) {
        const auto& items = table.find(ticket)->items;
        budget_.spend(items.size());
        if (budget_.is_exceeded()) {
          return;
        }
        std::ranges::transform(items, std::inserter(resources_, resources_.end()), &Item::resource);
      }
    }
  }

  std::optional<DeadlockSet> run() && {
    // Resources where no lease of the set waits have no index: a removal there unblocks no wait.
    for (const auto& resource : resources_) {
      add(resource);
      if (budget_.is_exceeded()) {
        return std::nullopt;
      }
    }
    // The first runnable leases: none of their waits is blocked.
    for (const auto lease : deadlocked_.leases) {
      if (!blocked_.contains(lease)) {
        free_.push_back(lease);
      }
    }
    while (!free_.empty()) {
      remove(free_.front());
      if (budget_.is_exceeded()) {
        return std::nullopt;
      }
      free_.pop_front();
    }
    for (const auto& [resource, permits] : permits_) {
      deadlocked_.permit_waits.emplace(resource, permits.blocked());
    }
    return std::move(deadlocked_);
  }

 private:
  [[nodiscard]] bool is_deadlocked(LeaseId lease) const {
    return deadlocked_.leases.contains(lease);
  }

  void add(const Resource& resource) {
    const auto& lock = *table_.find(resource);
    const bool is_space = resource.kind == ResourceKind::space;
    budget_.spend(is_space ? lock.ranges().held.size() + lock.ranges().queued.size()
                           : lock.holds().size() + lock.queue().size());
    if (budget_.is_exceeded()) {
      return;
    }
    if (is_space) {
      add_space(resource, lock);
    } else {
      lock.capacity() > 0 ? add_semaphore(resource, lock) : add_name(resource, lock);
    }
  }

  /// Calls on_hold(hold, item), then on_wait(wait, item), for the records of deadlocked leases at a
  /// name.
  template <class OnHold, class OnWait>
  void visit_deadlocked(const Resource& resource, const Lock& lock, const OnHold& on_hold,
                        const OnWait& on_wait) const {
    for (const auto token : lock.holds()) {
      const auto& hold = *table_.find(token);
      if (is_deadlocked(hold.lease)) {
        on_hold(hold, items_at(hold.items, resource).front());
      }
    }
    for (const auto& turn : lock.queue()) {
      const auto& wait = *table_.find(turn.ticket);
      if (is_deadlocked(wait.lease)) {
        on_wait(wait, items_at(wait.items, resource).front());
      }
    }
  }

  void add_semaphore(const Resource& resource, const Lock& lock) {
    auto& permits = permits_.emplace(resource, BlockedPermits(lock.capacity())).first->second;
    visit_deadlocked(
        resource, lock,
        [&](const Hold& hold, const Item& item) {
          permits.add_hold(hold.lease, std::get<Permits>(item.claim));
        },
        [&](const Wait& wait, const Item& item) {
          permits.add_wait(wait, std::get<Permits>(item.claim));
        });
    block(permits.begin());
  }

  void add_name(const Resource& resource, const Lock& lock) {
    std::vector<ClaimIndex::Claim> claims;
    std::vector<LeaseId> leases;
    visit_deadlocked(
        resource, lock,
        [&](const Hold& hold, const Item& item) {
          claims.push_back({.token = hold.token, .mode = mode_of(item)});
          leases.push_back(hold.lease);
        },
        [&](const Wait& wait, const Item& item) {
          claims.push_back({.turn = wait.turn(), .mode = mode_of(item)});
          leases.push_back(wait.lease);
        });
    add_claims(resource, ClaimIndex(std::move(claims)), std::move(leases));
  }

  void add_space(const Resource& resource, const Lock& lock) {
    ClaimIndex index(lock.ranges(), [&](const ClaimIndex::Claim& claim) {
      return is_deadlocked(lease_of(claim));
    });
    std::vector<LeaseId> leases(index.size());
    for (const auto id : index.in_turn_order()) {
      leases[id] = lease_of(index[id]);
    }
    add_claims(resource, std::move(index), std::move(leases));
  }

  [[nodiscard]] LeaseId lease_of(const ClaimIndex::Claim& claim) const {
    return claim.token == FencingToken{} ? table_.find(claim.turn.ticket)->lease
                                         : table_.find(claim.token)->lease;
  }

  void add_claims(const Resource& resource, ClaimIndex index, std::vector<LeaseId> leases) {
    const auto added =
        claims_.try_emplace(resource, std::move(index), std::move(leases), deadlocked_.leases);
    block(added.first->second.begin());
  }

  void remove(LeaseId lease) {
    // Before the removal from the indexes, because BlockedClaims reads this set to skip removed
    // leases.
    deadlocked_.leases.erase(lease);
    const auto& owned = table_.owned(lease);
    budget_.spend(owned.items);
    if (budget_.is_exceeded()) {
      return;
    }
    for (const auto token : owned.holds) {
      for (const auto& item : table_.find(token)->items) {
        remove(item, [&](BlockedPermits& permits, const Permits& some) {
          return permits.remove_hold(some);
        });
      }
    }
    for (const auto ticket : owned.waits) {
      const auto& wait = *table_.find(ticket);
      for (const auto& item : wait.items) {
        remove(item, [&](BlockedPermits& permits, const Permits& some) {
          return permits.remove_wait(wait.turn(), some);
        });
      }
    }
  }

  template <class RemovePermits>
  void remove(const Item& item, const RemovePermits& remove_permits) {
    if (const auto* some = std::get_if<Permits>(&item.claim)) {
      // No index: no lease of the set waits at this resource.
      const auto it = permits_.find(item.resource_view());
      if (it != permits_.end()) {
        unblock(remove_permits(it->second, *some));
      }
    } else if (const auto it = claims_.find(item.resource_view()); it != claims_.end()) {
      unblock(it->second.remove(item));
    }
  }

  void block(std::span<const LeaseId> leases) {
    for (const auto lease : leases) {
      // Counts items and not waits: a lease is runnable when none of its items is blocked.
      ++blocked_[lease];
    }
  }

  void unblock(std::span<const LeaseId> leases) {
    for (const auto lease : leases) {
      if (--blocked_.at(lease) == 0) {
        free_.push_back(lease);
      }
    }
  }

  const LockTable& table_;
  VisitBudget& budget_;
  DeadlockSet deadlocked_;
  std::set<Resource> resources_;            ///< Resources at which the leases wait.
  std::map<LeaseId, std::size_t> blocked_;  ///< Number of blocked items in the waits of a lease.
  /// Indexes of the semaphores.
  std::map<Resource, BlockedPermits, ResourceOrder> permits_;
  /// Indexes of the other resources.
  std::map<Resource, BlockedClaims, ResourceOrder> claims_;
  std::deque<LeaseId> free_;  ///< Runnable leases that remain to be removed.
};

}  // namespace

std::optional<DeadlockSet> find_deadlocked(const LockTable& table, const std::set<LeaseId>& among,
                                           VisitBudget& budget) {
  return Reduction(table, among, budget).run();
}

DeadlockSet find_deadlocked(const LockTable& table) {
  std::set<LeaseId> all;
  for (const auto& [ticket, wait] : table.waits()) {
    all.insert(wait->lease);
  }
  Visits visits;
  VisitBudget unlimited(visits, std::numeric_limits<std::uint64_t>::max());
  return *find_deadlocked(table, all, unlimited);
}

}  // namespace tenure::core
