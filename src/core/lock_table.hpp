#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <absl/container/btree_set.h>

#include "core/cow_map.hpp"
#include "core/cow_ptr.hpp"
#include "core/ids.hpp"
#include "core/item.hpp"
#include "core/lock.hpp"
#include "core/shared_string.hpp"
#include "core/turn_queue.hpp"
#include "core/visits.hpp"

namespace tenure::core {

/// A granted request.
struct Hold {
  FencingToken token{};        ///< Revision of the grant; an upgrade gets a new token.
  Revision create_revision{};  ///< Revision of the first grant.
  LeaseId lease{};
  RequestId request{};  ///< Request that created the hold.
  Items items{};        ///< In the order of comes_before().
  SharedString owner{};
  SharedString metadata{};
  ClusterTime acquired{};   ///< Time at which the token was granted.
  std::uint32_t count = 1;  ///< Number of releases that end the hold (reentry).

  friend bool operator==(const Hold&, const Hold&) = default;
};

/// A waiting request. It is in the queues of all its items. The ticket is the revision in which it
/// was queued.
struct Wait {
  Revision ticket{};
  LeaseId lease{};
  RequestId request{};
  Items items{};  ///< In the order of comes_before().
  SharedString owner{};
  SharedString metadata{};
  ClusterTime since{};
  std::optional<FencingToken> upgrades{};  ///< Hold that the request upgrades.

  [[nodiscard]] Turn turn() const noexcept {
    return {.rank = upgrades ? Rank::upgrade : Rank::arrival, .ticket = ticket};
  }
  friend bool operator==(const Wait&, const Wait&) = default;
};

/// Lock table: holds, wait queues and the admission rule. It knows neither the lifetimes of leases
/// nor events; Step (core/step.hpp) combines the tables.
///
/// Admission rule: a claim is admitted when it is compatible with every holder and with every wait
/// ahead in the queue; a claim on permits, when it fits into the capacity together with those. So
/// no request overtakes one that it conflicts with. A grant never makes another claim admissible: a
/// claim that conflicted with the waiter conflicts with the holder.
///
/// All parts are copy-on-write. Not thread safe.
class LockTable {
 public:
  using Locks = CowMap<Resource, Lock, ResourceOrder>;
  using Holds = CowMap<FencingToken, CowPtr<Hold>>;
  using Waits = CowMap<Revision, CowPtr<Wait>>;

  /// Records attached to one lease.
  struct Owned {
    absl::btree_set<FencingToken> holds;
    absl::btree_set<Revision> waits;
    std::size_t items = 0;  ///< Number of items in the holds and waits.
    std::size_t bytes = 0;  ///< Bytes of the holds and waits (core/usage.hpp).
  };

  // REQUIRES: a pointer that find() returned is not used after any change of the table.
  [[nodiscard]] const Lock* find(const ResourceView& resource) const;
  [[nodiscard]] const Hold* find(FencingToken token) const;
  [[nodiscard]] const Wait* find(Revision ticket) const;
  [[nodiscard]] const Owned& owned(LeaseId lease) const;

  /// Hold of this lease with exactly this name, space and range; the latest one, if there are
  /// several.
  [[nodiscard]] const Hold* own_hold(LeaseId lease, const Item& like, Visits& visits) const;

  void add(Hold hold, Revision when);
  void add(Wait wait);
  /// Removes a hold with all its items.
  Hold remove(FencingToken token, Revision when);
  /// Removes a wait from all its queues.
  Wait remove(Revision ticket);
  /// Removes one item of a hold; the hold ends with its last item.
  Item remove_item(FencingToken token, std::size_t index, Revision when);
  /// Sets the number of releases that end the hold.
  void set_count(FencingToken token, std::uint32_t count);
  /// Upgrades the hold `wait.upgrades` to the mode of the wait, with a new token.
  void upgrade(const Wait& wait, FencingToken token, ClusterTime now);

  /// Downgrades a hold, which keeps its token. REQUIRES: it has one item, with a mode.
  void downgrade(FencingToken token, LockMode mode, Revision when);

  [[nodiscard]] const Locks& locks() const noexcept { return locks_; }
  [[nodiscard]] const Holds& holds() const noexcept { return holds_; }
  [[nodiscard]] const Waits& waits() const noexcept { return waits_; }
  [[nodiscard]] const std::map<LeaseId, Owned>& owners() const noexcept { return owners_; }

  /// Number of held items, by kind_of() their claims.
  using Counts = std::array<std::size_t, claim_kinds>;
  [[nodiscard]] const Counts& held() const noexcept { return held_; }

  /// Restores the counters of a lock, after a snapshot has added its holds.
  void set_counters(const ResourceView& resource, const Lock::Counters& counters);

 private:
  /// Adds one item of a hold to the record of its resource.
  void attach(const Hold& hold, const Item& item, Revision when);
  /// Removes one item of a hold from the record of its resource. `left`: items that the hold keeps,
  /// or that are still to be detached.
  void detach(FencingToken token, std::span<const Item> left, const Item& item, Revision when);
  /// Finds or creates the record of the resource of `item`.
  Lock& record_of(const Item& item);
  /// Drops the record of a resource without holders and waits.
  void drop_if_free(const ResourceView& resource);
  /// Drops the index entry of a lease without holds and waits.
  void drop_owned_if_empty(LeaseId lease);

  Locks locks_;
  Holds holds_;
  Waits waits_;
  std::map<LeaseId, Owned> owners_;
  Counts held_{};
};

}  // namespace tenure::core
