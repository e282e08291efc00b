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

/// Decremental index of the waits at one resource whose claims have modes: which of them are
/// blocked by claims of other deadlocked leases, while the graph reduction (core/deadlock_set.hpp)
/// removes leases one by one.
///
/// Watched lists: a blocked wait watches one list of the index that blocks it, and moves on to its
/// next list when that one does not any more; a list that does not block a wait never blocks it
/// again. Each list knows its first claim of a deadlocked lease, which blocks all waits behind it
/// except those of its own lease, and the first claim of any other deadlocked lease, which blocks
/// those. Both positions only move forward. So all removals together cost O(n log^2 n) for n
/// claims.
///
/// Not thread safe.
class BlockedClaims {
 public:
  /// `leases`: lease of each claim that the index lists, by id. REQUIRES: all of them are in
  /// `deadlocked`, which outlives this object.
  BlockedClaims(ClaimIndex index, std::vector<LeaseId> leases, const std::set<LeaseId>& deadlocked);

  /// Builds the index. Returns the lease of each blocked claim, once per claim.
  [[nodiscard]] std::vector<LeaseId> begin();
  /// Removes an item whose lease is not deadlocked any more. Returns the lease of each claim that
  /// became unblocked.
  [[nodiscard]] std::vector<LeaseId> remove(const Item& item);

 private:
  using Id = ClaimIndex::Id;
  using ListId = ClaimIndex::ListId;

  /// Positions in a list.
  struct Front {
    std::uint32_t first = 0;   ///< First claim of a deadlocked lease.
    std::uint32_t second = 0;  ///< First claim of another deadlocked lease.
  };
  /// Waits that watch one list, in two orders: by turn for a scan from the front, and by lease for
  /// the waits that the first claim of the list does not block.
  struct Watchers {
    std::set<std::pair<Turn, Id>> by_turn{};
    std::set<std::tuple<LeaseId, Turn, Id>> by_lease{};
  };

  /// Whether no list blocks the claim. If one does, the claim watches it from now on.
  bool is_free(Id id);
  /// Whether the list contains a claim of another deadlocked lease ahead of this claim.
  [[nodiscard]] bool blocks(ListId list, Id id);
  /// Moves the positions of the list past claims whose leases were removed.
  const Front& advance(ListId list);
  /// Removes and returns the watchers that the list does not block any more.
  [[nodiscard]] std::vector<Id> take_released(ListId list);

  /// Claims of all deadlocked leases at the resource.
  ClaimIndex index_;
  /// Lease of each claim, by id.
  std::vector<LeaseId> leases_;
  /// Leases that the reduction has not removed yet. The caller shrinks the set before it calls
  /// remove().
  const std::set<LeaseId>& deadlocked_;
  std::vector<Front> fronts_;  ///< First blocking claims, by list.
  /// Waits that watch a list, for lists that are watched.
  std::map<ListId, Watchers> watchers_;
};

}  // namespace tenure::core
