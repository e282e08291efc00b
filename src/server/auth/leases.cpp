#include "server/auth/leases.hpp"

#include <algorithm>

namespace tenure::server::auth {
namespace {

/// Maximum number of visited clients of a user. A client is a label that the user chooses, so one
/// user can have as many as leases. A listing runs on the store's thread.
constexpr std::size_t clients_max = 10'000;

/// First ids of the leases of a user in the range, plus one that shows whether more follow, sorted.
/// Visits the first clients of the user by name, and at most `limit` + 1 leases of each.
std::vector<core::LeaseId> own_ids(const core::LeaseTable& table, const User& user,
                                   const LeaseRange& range) {
  std::vector<core::LeaseId> ids;
  const auto keep_first = [&] {
    std::ranges::sort(ids);
    ids.resize(std::min(ids.size(), range.limit + 1));
  };
  const auto& clients = table.clients();
  std::size_t visited = 0;
  for (auto it = clients.lower_bound(qualified_client(user, {}));
       it != clients.end() && is_owned_by(user, it->first) && visited < clients_max;
       ++it, ++visited) {
    const auto& leases = it->second;
    auto next = leases.upper_bound(range.after);
    for (std::size_t n = 0; n <= range.limit && next != leases.end(); ++n, ++next) {
      ids.push_back(*next);
    }
    // Bounds the memory for a user with many clients: sorting at four times the limit costs little
    // per id.
    if (ids.size() > 4 * (range.limit + 1)) {
      keep_first();
    }
  }
  keep_first();
  return ids;
}

}  // namespace

bool is_visible(const Access& access, const core::Lease& lease) {
  return access.may_globally(Verb::read) ||
         (access.user() != nullptr && is_owned_by(*access.user(), lease.client.view()));
}

LeaseList visible_leases_after(const core::LeaseTable& table, const Access& access,
                               const LeaseRange& range) {
  LeaseList list;
  if (access.may_globally(Verb::read)) {
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
