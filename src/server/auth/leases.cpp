#include "server/auth/leases.hpp"

#include <algorithm>

namespace tenure::server::auth {
namespace {

/// The ids behind `after` of the leases of a user, in order.
std::vector<core::LeaseId> own_ids(const core::LeaseTable& table, const User& user,
                                   core::LeaseId after) {
  std::vector<core::LeaseId> ids;
  const auto& clients = table.clients();
  for (auto it = clients.lower_bound(client_of(user, {}));
       it != clients.end() && is_of(user, it->first); ++it) {
    ids.insert(ids.end(), it->second.upper_bound(after), it->second.end());
  }
  std::ranges::sort(ids);
  return ids;
}

}  // namespace

bool may_see(const Access& access, const core::Lease& lease) {
  return access.may_overall(Verb::read) ||
         (access.user() != nullptr && is_of(*access.user(), lease.client.view()));
}

LeaseList leases_behind(const core::LeaseTable& table, const Access& access,
                        const LeaseRange& range) {
  LeaseList list;
  if (access.may_overall(Verb::read)) {
    auto it = table.all().upper_bound(range.after);
    for (; it != table.all().end() && list.leases.size() < range.limit; ++it) {
      list.leases.push_back(&*it->second);
    }
    list.has_more = it != table.all().end();
    return list;
  }
  if (access.user() == nullptr) {
    return list;
  }
  const auto ids = own_ids(table, *access.user(), range.after);
  list.has_more = ids.size() > range.limit;
  for (std::size_t n = 0; n < std::min(ids.size(), range.limit); ++n) {
    list.leases.push_back(table.find(ids[n]));
  }
  return list;
}

}  // namespace tenure::server::auth
