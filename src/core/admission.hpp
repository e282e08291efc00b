#pragma once

#include <cstddef>
#include <map>
#include <span>

#include "core/claim_index.hpp"
#include "core/lock_table.hpp"
#include "core/visits.hpp"

namespace tenure::core {

/// Admission check: decides whether a wait may be granted beside the holders and the waits ahead.
///
/// Incremental: for waits in the order of their turns it reads each queue once, so that admitting
/// n waiters of one queue costs O(n) and not O(n^2).
///
/// REQUIRES: the turns of a resource ascend from call to call, and between calls the table changes
/// only by grants to waits that were admitted. Not thread safe.
class Admission {
 public:
  Admission(const LockTable& table, Visits& visits) : table_(table), visits_(visits) {}

  /// Whether all items of `wanted` are compatible with the holders (except the hold that it
  /// upgrades) and with all waits ahead of its turn. `wanted` need not be in the queue.
  [[nodiscard]] bool admits(const Wait& wanted);
  /// Load of the waits ahead of this turn at a name. Stops early: of a load that admits no further
  /// wait it may return only a part.
  [[nodiscard]] Load load_before(const Lock& lock, const ResourceView& resource, const Turn& turn);

 private:
  /// Part of a queue that was read already.
  struct Ahead {
    Turn next = turn_of_holds;  ///< First turn that is not in the load.
    Load load{};
  };
  /// Index of a space, with the cursors of the searches for all waits of one pass.
  struct Space {
    ClaimIndex index;
    ClaimIndex::Heads heads;
  };

  /// Admission at one name: compares counters of modes and permits, O(1) without a queue ahead.
  [[nodiscard]] bool admits_at_name(const Wait& wanted, const Item& item);
  /// Admission of all ranges of the request in one space.
  [[nodiscard]] bool admits_in_space(const Wait& wanted, std::span<const Item> items);
  /// Admission of one range, by a search for overlaps.
  [[nodiscard]] bool admits_keys(const Wait& wanted, const Keys& keys, const RangeIndex& ranges);
  /// Admission of all ranges of a queued wait in one space, by an index that all waits share.
  [[nodiscard]] bool admits_indexed(const Wait& wanted, const ResourceView& resource,
                                    const Lock& lock);
  /// The same for a wait that is not in the queue, whose claims are in no index.
  [[nodiscard]] bool admits_in_one_pass(const Wait& wanted, std::span<const Item> items,
                                        const RangeIndex& ranges);
  /// Index of a space; builds it at the first call.
  [[nodiscard]] Space& space_of(const ResourceView& resource, const Lock& lock);

  const LockTable& table_;
  /// Cost counter of the step, shared with the other parts of the step.
  Visits& visits_;
  /// Cursor in the queue of each name that was read.
  std::map<Resource, Ahead, ResourceOrder> ahead_;
  /// Claims on ranges that admits_keys() visited. An index is built, or all claims are visited,
  /// only after as many visits as there are claims: this at most doubles the cost.
  std::size_t range_visits_ = 0;
  /// Indexes of the spaces for which building one paid.
  std::map<Resource, Space, ResourceOrder> spaces_;
};

}  // namespace tenure::core
