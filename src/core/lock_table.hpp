#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
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
  FencingToken token{};        ///< The revision of the grant; an upgrade gets a new one.
  Revision create_revision{};  ///< Of the first grant.
  LeaseId lease{};
  RequestId request{};  ///< The one that began it.
  Items items{};        ///< In the order of comes_before().
  SharedString owner{};
  SharedString metadata{};
  ClusterTime acquired{};   ///< When the token was granted.
  std::uint32_t count = 1;  ///< Releases that it takes.

  friend bool operator==(const Hold&, const Hold&) = default;
};

/// A request in the queues of all its items. The ticket is the revision in which it joined.
struct Wait {
  Revision ticket{};
  LeaseId lease{};
  RequestId request{};
  Items items{};  ///< In the order of comes_before().
  SharedString owner{};
  SharedString metadata{};
  ClusterTime since{};
  std::optional<FencingToken> upgrades{};  ///< The hold it wants to strengthen.

  [[nodiscard]] Turn turn() const noexcept {
    return {.rank = upgrades ? Rank::upgrade : Rank::arrival, .ticket = ticket};
  }
  friend bool operator==(const Wait&, const Wait&) = default;
};

/// Holds and queues of all places, and who may go. It knows neither leases' lives nor events.
///
/// A claim is admitted when it is compatible with every holder and everybody ahead in the queue;
/// for permits: when all of those and this one fit into the capacity. So nobody is overtaken by
/// one he conflicts with. A grant never admits anybody else: he who waited for the waiter waits for
/// the holder.
class LockTable {
 public:
  using Locks = CowMap<Resource, Lock, ResourceOrder>;
  using Holds = CowMap<FencingToken, CowPtr<Hold>>;
  using Waits = CowMap<Revision, CowPtr<Wait>>;

  /// What hangs on one lease.
  struct Owned {
    absl::btree_set<FencingToken> holds;
    absl::btree_set<Revision> waits;
    std::size_t items = 0;  ///< In all of them.
    std::size_t bytes = 0;  ///< Of all of them (core/usage.hpp).
  };

  // What find() returns may be of another age after any change: then ask again.
  [[nodiscard]] const Lock* find(const ResourceView& resource) const;
  [[nodiscard]] const Hold* find(FencingToken token) const;
  [[nodiscard]] const Wait* find(Revision ticket) const;
  [[nodiscard]] const Owned& owned(LeaseId lease) const;

  /// The hold of this lease, of the latest token, that has this very name, space and range.
  [[nodiscard]] const Hold* own_hold(LeaseId lease, const Item& like, Visits& visits) const;

  void add(Hold hold, Revision when);
  void add(Wait wait);
  Hold remove(FencingToken token, Revision when);
  Wait remove(Revision ticket);
  /// Takes away one item; the hold ends with its last one.
  Item remove_item(FencingToken token, std::size_t index, Revision when);
  void set_count(FencingToken token, std::uint32_t count);
  /// The hold of `wait.upgrades` gets the mode of the wait and this token.
  void upgrade(const Wait& wait, FencingToken token, ClusterTime now);

  /// The hold keeps its token and gets this mode. REQUIRES: it has one item, with a mode.
  void downgrade(FencingToken token, LockMode mode, Revision when);

  /// Must add the hold and then remove the wait.
  using Grant = std::function<void(Revision)>;
  /// Calls grant(ticket) for everybody who may go at this name, in order.
  void admit_waiters(const ResourceView& resource, const Grant& grant, Visits& visits);
  /// The same for a space, of which something in these ranges came free. Who waits for none of
  /// them is not looked at.
  void admit_waiters(const ResourceView& space, const std::vector<BytesRange>& freed,
                     const Grant& grant, Visits& visits);

  [[nodiscard]] const Locks& locks() const noexcept { return locks_; }
  [[nodiscard]] const Holds& holds() const noexcept { return holds_; }
  [[nodiscard]] const Waits& waits() const noexcept { return waits_; }
  [[nodiscard]] const std::map<LeaseId, Owned>& owners() const noexcept { return owners_; }

  /// How many items are held, by kind_of() their claims.
  using Counts = std::array<std::size_t, claim_kinds>;
  [[nodiscard]] const Counts& held() const noexcept { return held_; }

  /// For the snapshot: the counters of a lock, after its holds were added.
  void set_counters(const ResourceView& resource, const Lock::Counters& counters);

 private:
  void attach(const Hold& hold, const Item& item, Revision when);
  void detach(FencingToken token, std::span<const Item> left, const Item& item, Revision when);
  /// Makes one if there is none.
  Lock& record_of(const Item& item);
  void drop_if_free(const ResourceView& resource);
  void drop_owned_if_empty(LeaseId lease);

  Locks locks_;
  Holds holds_;
  Waits waits_;
  std::map<LeaseId, Owned> owners_;
  Counts held_{};
};

}  // namespace tenure::core
