#pragma once

#include <cstddef>
#include <map>
#include <span>

#include "core/claim_index.hpp"
#include "core/lock_table.hpp"
#include "core/visits.hpp"

namespace tenure::core {

/// Decides which waits may be granted. Asked about many waits in the order of their turns, it reads
/// each queue once and not once for each wait.
///
/// REQUIRES: the turns of a place ascend from call to call, and between calls the table changes
/// only by grants to waits that were admitted.
class Admission {
 public:
  Admission(const LockTable& table, Visits& visits) : table_(table), visits_(visits) {}

  /// May all that is wanted be held beside the holders (but the one to be strengthened) and
  /// all waits whose turn is before? It need not be in the queue.
  [[nodiscard]] bool admits(const Wait& wanted);
  /// What the waits ahead of this turn want at a name. Of a load that admits no further wait, maybe
  /// only a part.
  [[nodiscard]] Load load_before(const Lock& lock, const ResourceView& resource, const Turn& turn);

 private:
  /// Part of a queue that was read.
  struct Ahead {
    Turn next = turn_of_holds;  ///< The first turn that is not in the load.
    Load load{};
  };
  struct Space {
    ClaimIndex index;
    ClaimIndex::Heads heads;
  };

  [[nodiscard]] bool admits_at_name(const Wait& wanted, const Item& item);
  [[nodiscard]] bool admits_in_space(const Wait& wanted, std::span<const Item> items);
  [[nodiscard]] bool admits_keys(const Wait& wanted, const Keys& keys, const RangeIndex& ranges);
  [[nodiscard]] Space& space_of(const ResourceView& resource, const Lock& lock);

  const LockTable& table_;
  Visits& visits_;
  std::map<Resource, Ahead, ResourceOrder> ahead_;
  std::size_t range_visits_ = 0;  ///< Without an index.
  std::map<Resource, Space, ResourceOrder> spaces_;
};

}  // namespace tenure::core
