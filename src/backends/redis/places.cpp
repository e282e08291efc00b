#include "backends/redis/places.hpp"

#include <utility>

namespace tenure::backends::redis {

Places::Lease* Places::find(LeaseId id) {
  const auto it = leases_.find(id);
  return it == leases_.end() ? nullptr : &it->second;
}

Places::Lease Places::take(LeaseId id) {
  const auto it = leases_.find(id);
  if (it == leases_.end()) {
    return {};
  }
  auto taken = std::move(it->second);
  leases_.erase(it);
  return taken;
}

std::vector<LeaseId> Places::all() const {
  std::vector<LeaseId> ids;
  ids.reserve(leases_.size());
  for (const auto& [id, lease] : leases_) {
    ids.push_back(id);
  }
  return ids;
}

Place* Places::find(LeaseId id, const Spot& spot) {
  auto* const lease = find(id);
  return lease == nullptr ? nullptr : find(*lease, spot);
}

Place* Places::find(Lease& lease, const Spot& spot) {
  const auto it = lease.places.find(spot);
  return it == lease.places.end() ? nullptr : &it->second;
}

void Places::use(Lease& lease, const Member& member, const std::shared_ptr<const Ask>& ask) {
  auto& place = lease.places[{.name = ask->items.front().name, .member = member}];
  ++place.uses;
  if (place.ask == nullptr) {
    place.ask = ask;
  }
}

void Places::confirm(LeaseId id, const Spot& spot) {
  if (auto* const place = find(id, spot)) {
    place->is_confirmed = true;
  }
}

void Places::unuse(Lease& lease, const Spot& spot) {
  const auto it = lease.places.find(spot);
  if (it != lease.places.end() && --it->second.uses == 0) {
    lease.places.erase(it);
  }
}

void Places::forget(LeaseId id, const Spot& spot) {
  if (auto* const lease = find(id)) {
    lease->places.erase(spot);
  }
}

}  // namespace tenure::backends::redis
