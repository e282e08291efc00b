#include "core/blocked_claims.hpp"

#include <algorithm>
#include <variant>

namespace tenure::core {

BlockedClaims::BlockedClaims(ClaimIndex index, std::vector<LeaseId> leases,
                             const std::set<LeaseId>& deadlocked)
    : index_(std::move(index)),
      leases_(std::move(leases)),
      deadlocked_(deadlocked),
      fronts_(index_.list_count()) {}

std::vector<LeaseId> BlockedClaims::begin() {
  std::vector<LeaseId> blocked;
  // is_free() also registers the first watch of each blocked wait.
  for (const auto id : index_.in_turn_order()) {
    const bool is_wait = index_[id].token == FencingToken{};
    if (is_wait && !is_free(id)) {
      blocked.push_back(leases_[id]);
    }
  }
  return blocked;
}

std::vector<LeaseId> BlockedClaims::remove(const Item& item) {
  // Only the lists that contain the removed claim can unblock a wait. At a name all claims have the
  // default span, so an item without a range needs none.
  ClaimIndex::Claim claim{.mode = mode_of(item)};
  if (const auto* keys = std::get_if<Keys>(&item.claim)) {
    claim.span = index_.span_of(keys->range);
  }
  std::vector<LeaseId> freed;
  index_.visit_lists_of(claim, [&](ListId list) {
    for (const auto id : take_released(list)) {
      if (is_free(id)) {
        freed.push_back(leases_[id]);
      }
    }
  });
  return freed;
}

// Watches only one blocking list (as the watched literals of SAT solvers): the others matter only
// when that one does not block the claim any more.
bool BlockedClaims::is_free(Id id) {
  const auto& claim = index_[id];
  return index_.visit_blocking_lists(ClaimIndex::query_of(claim), [&](ListId list) {
    if (!blocks(list, id)) {
      return true;
    }
    auto& watchers = watchers_[list];
    watchers.by_turn.emplace(claim.turn, id);
    watchers.by_lease.emplace(leases_[id], claim.turn, id);
    return false;
  });
}

bool BlockedClaims::blocks(ListId list, Id id) {
  const auto& front = advance(list);
  const auto claims = index_.claims_of(list);
  const auto is_ahead = [&](std::uint32_t at) {
    return at < claims.size() && index_[claims[at]].turn < index_[id].turn;
  };
  // A claim does not block its own lease, so the first claim of another lease decides.
  const bool is_own = front.first < claims.size() && leases_[claims[front.first]] == leases_[id];
  return is_ahead(is_own ? front.second : front.first);
}

const BlockedClaims::Front& BlockedClaims::advance(ListId list) {
  const auto claims = index_.claims_of(list);
  const auto is_deadlocked = [&](std::uint32_t at) {
    return deadlocked_.contains(leases_[claims[at]]);
  };
  auto& [first, second] = fronts_[list];
  while (first < claims.size() && !is_deadlocked(first)) {
    ++first;
  }
  // All claims before it belong to the first lease, or to a lease that is not deadlocked.
  second = std::max(first, second);
  while (second < claims.size() &&
         (!is_deadlocked(second) || leases_[claims[second]] == leases_[claims[first]])) {
    ++second;
  }
  return fronts_[list];
}

std::vector<BlockedClaims::Id> BlockedClaims::take_released(ListId list) {
  std::vector<Id> released;
  const auto found = watchers_.find(list);
  if (found == watchers_.end()) {
    return released;
  }
  auto& [by_turn, by_lease] = found->second;
  // If the list blocks a wait, it blocks all waits behind it except those of the first lease.
  while (!by_turn.empty() && !blocks(list, by_turn.begin()->second)) {
    const auto [turn, id] = *by_turn.begin();
    by_turn.erase(by_turn.begin());
    by_lease.erase({leases_[id], turn, id});
    released.push_back(id);
  }
  const auto claims = index_.claims_of(list);
  const auto first = advance(list).first;
  if (first == claims.size()) {
    return released;
  }
  const auto lease = leases_[claims[first]];
  // The waits of the first lease are the exception of the loop above: another claim decides for
  // them, so they may be free although an earlier watcher is not.
  for (auto own = by_lease.lower_bound({lease, Turn{.rank = Rank::upgrade}, Id{}});
       own != by_lease.end() && std::get<LeaseId>(*own) == lease &&
       !blocks(list, std::get<Id>(*own));) {
    by_turn.erase({std::get<Turn>(*own), std::get<Id>(*own)});
    released.push_back(std::get<Id>(*own));
    own = by_lease.erase(own);
  }
  return released;
}

}  // namespace tenure::core
