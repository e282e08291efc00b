#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "core/claim_index.hpp"
#include "core/ids.hpp"
#include "core/item.hpp"

namespace tenure::core {

/// The waits at one place whose claims have modes, and whether claims of other stuck leases block
/// them, while fewer and fewer leases are stuck (core/deadlock_set.hpp).
///
/// Watched lists: a blocked wait watches one list of the index that blocks it, and moves on to its
/// next list when that one does not any more; a list that does not block a wait never blocks it
/// again. Each list knows its first claim of a stuck lease, which blocks all waits behind it except
/// those of its own lease, and the first claim of any other stuck lease, which blocks those. Both
/// positions only move forward. So all removals together cost O(n log^2 n) for n claims.
class BlockedClaims {
 public:
  /// `leases` has the lease of each claim that is listed in the index, by id. All of them are
  /// stuck; `stuck` must outlive this.
  BlockedClaims(ClaimIndex index, std::vector<LeaseId> leases, const std::set<LeaseId>& deadlocked);

  /// The lease of each claim that is blocked, once for each of its claims.
  [[nodiscard]] std::vector<LeaseId> begin();
  /// The lease that holds or waits for this item is not stuck any more. Returns the lease of each
  /// claim that is not blocked any more.
  [[nodiscard]] std::vector<LeaseId> remove(const Item& item);

 private:
  using Id = ClaimIndex::Id;
  using ListId = ClaimIndex::ListId;

  /// Positions in a list.
  struct Front {
    std::uint32_t first = 0;   ///< First claim of a stuck lease.
    std::uint32_t second = 0;  ///< First claim of another stuck lease.
  };
  struct Watchers {
    std::set<std::pair<Turn, Id>> by_turn{};
    std::set<std::tuple<LeaseId, Turn, Id>> by_lease{};
  };

  /// False: the claim is blocked and watches a list from now on.
  bool is_free(Id id);
  [[nodiscard]] bool blocks(ListId list, Id id);
  const Front& advance(ListId list);
  /// Claims that watched the list, which does not block them any more.
  [[nodiscard]] std::vector<Id> take_released(ListId list);

  ClaimIndex index_;
  std::vector<LeaseId> leases_;
  const std::set<LeaseId>& deadlocked_;
  std::vector<Front> fronts_;  ///< By list.
  std::map<ListId, Watchers> watchers_;
};

}  // namespace tenure::core
