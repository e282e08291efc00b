#include "backends/redis/lease_memberships.hpp"

#include <utility>

namespace tenure::backends::redis {

LeaseMemberships::Lease* LeaseMemberships::find(LeaseId id) {
  const auto it = leases_.find(id);
  return it == leases_.end() ? nullptr : &it->second;
}

LeaseMemberships::Lease LeaseMemberships::take(LeaseId id) {
  const auto it = leases_.find(id);
  if (it == leases_.end()) {
    return {};
  }
  auto taken = std::move(it->second);
  leases_.erase(it);
  return taken;
}

std::vector<LeaseId> LeaseMemberships::all() const {
  std::vector<LeaseId> ids;
  ids.reserve(leases_.size());
  for (const auto& [id, lease] : leases_) {
    ids.push_back(id);
  }
  return ids;
}

Membership* LeaseMemberships::find(LeaseId id, const MemberKey& member_key) {
  auto* const lease = find(id);
  return lease == nullptr ? nullptr : find(*lease, member_key);
}

Membership* LeaseMemberships::find(Lease& lease, const MemberKey& member_key) {
  const auto it = lease.memberships.find(member_key);
  return it == lease.memberships.end() ? nullptr : &it->second;
}

void LeaseMemberships::add_use(Lease& lease, const MemberKey& member_key,
                               const std::shared_ptr<const AcquireSpec>& spec) {
  auto& membership = lease.memberships[member_key];
  ++membership.uses;
  if (membership.spec == nullptr) {
    membership.spec = spec;
  }
}

void LeaseMemberships::confirm(LeaseId id, const MemberKey& member_key) {
  if (auto* const membership = find(id, member_key)) {
    membership->is_confirmed = true;
  }
}

void LeaseMemberships::remove_use(Lease& lease, const MemberKey& member_key) {
  const auto it = lease.memberships.find(member_key);
  if (it != lease.memberships.end() && --it->second.uses == 0) {
    lease.memberships.erase(it);
  }
}

void LeaseMemberships::forget(LeaseId id, const MemberKey& member_key) {
  if (auto* const lease = find(id)) {
    lease->memberships.erase(member_key);
  }
}

}  // namespace tenure::backends::redis
