#include "server/auth/leases.hpp"

#include <algorithm>

namespace tenure::server::auth {
namespace {

/// The first ids in the range of the leases of a user and one more, in order. Visits each client of
/// the user, and no more leases of one client than the range has.
std::vector<core::LeaseId> own_ids(const core::LeaseTable& table, const User& user,
                                   const LeaseRange& range) {
  std::vector<core::LeaseId> ids;
  const auto keep_first = [&] {
    std::ranges::sort(ids);
    ids.resize(std::min(ids.size(), range.limit + 1));
  };
  const auto& clients = table.clients();
  for (auto it = clients.lower_bound(client_of(user, {}));
       it != clients.end() && is_of(user, it->first); ++it) {
    const auto& leases = it->second;
    auto next = leases.upper_bound(range.after);
    for (std::size_t n = 0; n <= range.limit && next != leases.end(); ++n, ++next) {
      ids.push_back(*next);
    }
    if (ids.size() > 4 * (range.limit + 1)) {
      keep_first();
    }
  }
  keep_first();
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
  const auto ids = own_ids(table, *access.user(), range);
  list.has_more = ids.size() > range.limit;
  for (std::size_t n = 0; n < std::min(ids.size(), range.limit); ++n) {
    list.leases.push_back(table.find(ids[n]));
  }
  return list;
}

}  // namespace tenure::server::auth
