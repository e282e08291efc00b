#include "server/http/records.hpp"

#include <algorithm>
#include <iterator>
#include <set>

#include "core/items_at.hpp"

namespace tenure::server::http {
namespace {

// Depth in listings; a single lock shows more.
constexpr Depth in_lists{.holders = 10, .waiters = 0};
// Maximum number of items visited for one lease, readable or not, because visits cost time.
constexpr std::size_t items_of_lease_max = 1000;
// Depth in the wait-for graph; more cannot be drawn legibly.
constexpr Depth in_graphs{.holders = 20, .waiters = 50};
constexpr std::size_t items_of_graph_max = 1000;
constexpr std::size_t locks_of_graph_max = 200;
/// Byte budget of a list or graph. Copying this much takes about two milliseconds on the store's
/// thread. Ten holders with 4 KiB of metadata each are 40 KiB per lock.
constexpr std::size_t copied_bytes_max = std::size_t{4} << 20U;

/// Authenticated user of a lease. REQUIRES: the lease is alive.
std::string user_of(const View& view, core::LeaseId lease) {
  return std::string(view.state.leases.find(lease)->user);
}

HoldRecord copy_hold(const View& view, const core::Hold& hold, const core::Item& item) {
  return {.claim = item.claim,
          .token = hold.token,
          .create_revision = hold.create_revision,
          .lease = hold.lease,
          .request = hold.request,
          .owner = hold.owner,
          .user = user_of(view, hold.lease),
          .metadata = hold.metadata,
          .held_for = view.now - hold.acquired,
          .count = hold.count};
}

WaitRecord copy_wait(const View& view, const core::Wait& wait, const core::Item& item) {
  return {.claim = item.claim,
          .ticket = wait.ticket,
          .lease = wait.lease,
          .request = wait.request,
          .owner = wait.owner,
          .user = user_of(view, wait.lease),
          .metadata = wait.metadata,
          .waited = view.now - wait.since,
          .is_upgrade = wait.upgrades.has_value()};
}

/// A hold or wait on several ranges of a space appears as several holders or waiters.
template <class Record, class Add>
void each_item_at(const Record& record, const core::Resource& resource, Add add) {
  for (const auto& item : core::items_at(record.items, resource)) {
    add(item);
  }
}

LockRecord copy_head(const core::Resource& resource, const core::Lock& lock) {
  return {.resource = resource,
          .capacity = lock.capacity(),
          .create_revision = lock.create_revision(),
          .mod_revision = lock.mod_revision(),
          .version = lock.version(),
          .holder_count = lock.holds().size(),
          .waiter_count = lock.queue().size()};
}

LockRecord copy(const View& view, const core::Resource& resource, const core::Lock& lock,
                Depth depth) {
  auto record = copy_head(resource, lock);
  const auto& table = view.state.locks;
  for (const auto token : lock.holds()) {
    if (record.holders.size() >= depth.holders) {
      break;
    }
    const auto& hold = *table.find(token);
    each_item_at(hold, resource, [&](const core::Item& item) {
      record.holders.push_back(copy_hold(view, hold, item));
    });
  }
  // The position counts waits, not items: the items of one wait share a position and are granted
  // together.
  std::optional<core::Revision> before;
  std::size_t position = 0;
  for (const auto& turn : lock.queue()) {
    if (record.queue.size() >= depth.waiters) {
      break;
    }
    const auto& wait = *table.find(turn.ticket);
    ++position;
    each_item_at(wait, resource, [&](const core::Item& item) {
      record.queue.push_back(copy_wait(view, wait, item));
      record.queue.back().position = position;
      record.queue.back().predecessor = before;
    });
    before = turn.ticket;
  }
  return record;
}

/// Approximate memory of a record; strings chosen by clients dominate.
std::size_t bytes_of(const LockRecord& lock) {
  auto bytes = sizeof lock + lock.resource.name.size();
  const auto add = [&](const auto& record) {
    bytes += sizeof record + record.owner.size() + record.user.size() + record.metadata.size();
  };
  std::ranges::for_each(lock.holders, add);
  std::ranges::for_each(lock.queue, add);
  return bytes;
}

LeaseRecord copy_lease_head(const View& view, const core::Lease& lease) {
  const auto& owned = view.state.locks.owned(lease.id);
  return {.id = lease.id,
          .ttl = lease.ttl,
          .left = std::max(lease.deadline - view.now, core::ClusterTime{}),
          .lived = view.now - lease.granted,
          .seen_ago = view.now - lease.last_seen,
          .create_revision = lease.create_revision,
          .client = lease.client,
          .user = lease.user,
          .address = lease.address,
          .hold_count = owned.holds.size(),
          .wait_count = owned.waits.size()};
}

}  // namespace

LockPage copy_locks(const View& view, const LockQuery& query) {
  LockPage page{.revision = view.state.revision};
  std::size_t bytes = 0;
  const auto& locks = view.state.locks.locks();
  // A position before the prefix would start outside of the selection.
  const core::Resource first{.name = query.prefix};
  auto it = query.after && *query.after >= first ? locks.upper_bound(*query.after)
                                                 : locks.lower_bound(first);
  for (it = auth::first_readable(locks, it, query.access);
       it != locks.end() && it->first.name.starts_with(query.prefix);
       it = auth::first_readable(locks, ++it, query.access)) {
    if (page.records.size() == query.limit || bytes > copied_bytes_max) {
      page.next = page.records.back().resource;
      break;
    }
    page.records.push_back(copy(view, it->first, it->second, in_lists));
    bytes += bytes_of(page.records.back());
  }
  return page;
}

std::optional<LockRecord> copy_lock(const View& view, const core::Resource& resource, Depth depth) {
  const auto* lock = view.state.locks.find(resource);
  return lock == nullptr ? std::nullopt : std::optional(copy(view, resource, *lock, depth));
}

LeasePage copy_leases(const View& view, const auth::LeaseRange& range, const auth::Access& access) {
  LeasePage page{.revision = view.state.revision};
  const auto list = auth::visible_leases_after(view.state.leases, access, range);
  for (const auto* lease : list.leases) {
    page.records.push_back(copy_lease_head(view, *lease));
  }
  if (list.has_more) {
    page.next = page.records.back().id;
  }
  return page;
}

std::optional<LeaseRecord> copy_lease(const View& view, core::LeaseId id,
                                      const auth::Access& access) {
  const auto* lease = view.state.leases.find(id);
  if (lease == nullptr || !auth::is_visible(access, *lease)) {
    return std::nullopt;
  }
  // Items that are not readable count too: the limit bounds the time on the store's thread.
  std::size_t looked_at = 0;
  const auto is_shown = [&](const core::Item& item) {
    return ++looked_at <= items_of_lease_max && access.may(auth::Verb::read, item.name.view());
  };
  auto record = copy_lease_head(view, *lease);
  const auto& table = view.state.locks;
  // One record per item: an item of a lease that both holds and waits at a lock appears twice.
  const auto entry = [&](const core::Item& item) -> LockRecord& {
    const auto resource = item.resource();
    record.locks.push_back(copy_head(resource, *table.find(resource)));
    return record.locks.back();
  };
  for (const auto token : table.owned(id).holds) {
    const auto& hold = *table.find(token);
    for (const auto& item : hold.items) {
      if (is_shown(item)) {
        entry(item).holders.push_back(copy_hold(view, hold, item));
      }
    }
    if (looked_at >= items_of_lease_max) {
      return record;
    }
  }
  for (const auto ticket : table.owned(id).waits) {
    const auto& wait = *table.find(ticket);
    for (const auto& item : wait.items) {
      if (is_shown(item)) {
        entry(item).queue.push_back(copy_wait(view, wait, item));
      }
    }
    if (looked_at >= items_of_lease_max) {
      return record;
    }
  }
  return record;
}

GraphRecord copy_graph(const View& view, const auth::Access& access) {
  const auto& table = view.state.locks;
  const bool sees_all = access.is_unrestricted();
  GraphRecord record{.revision = view.state.revision, .waits = sees_all ? table.waits().size() : 0};
  std::set<core::Resource> seen;
  std::size_t looked_at = 0;
  std::size_t bytes = 0;
  // Tickets are revisions, so the iteration starts with the longest wait.
  for (auto it = table.waits().begin(); it != table.waits().end(); ++it) {
    if (looked_at >= items_of_graph_max) {
      record.is_complete = false;
      break;
    }
    looked_at += it->second->items.size();
    for (const auto& item : it->second->items) {
      const auto resource = item.resource();
      if (!access.may(auth::Verb::read, resource.name.view())) {
        continue;
      }
      // Counted per visit: the total would reveal the number of waits that the user may not read.
      record.waits += sees_all ? 0 : 1;
      if (seen.contains(resource)) {
        continue;
      }
      if (seen.size() == locks_of_graph_max || bytes > copied_bytes_max) {
        record.is_complete = false;
        return record;
      }
      seen.insert(resource);
      record.locks.push_back(copy(view, resource, *table.find(resource), in_graphs));
      bytes += bytes_of(record.locks.back());
    }
  }
  return record;
}

TokenRecord copy_token_check(const View& view, const core::Resource& resource,
                             core::FencingToken token) {
  const auto found = check_token(view.state, resource, token);
  return {.revision = view.state.revision,
          .verdict = found.verdict,
          .newest = found.newest,
          .owner = found.holder == nullptr ? "" : std::string(found.holder->owner)};
}

StatusRecord copy_status(const View& view) {
  const auto& state = view.state;
  return {.log = view.log,
          .limits = state.limits,
          .revision = state.revision,
          .compact_revision = state.events.compact_revision(),
          .now = view.now,
          .locks = state.locks.locks().size(),
          .holds = state.locks.holds().size(),
          .waits = state.locks.waits().size(),
          .leases = state.leases.all().size(),
          .events = state.events.all().size()};
}

ClusterRecord copy_cluster(const View& view) {
  ClusterRecord record{.log = view.log,
                       .version = view.state.version,
                       .members = {view.members.begin(), view.members.end()}};
  std::ranges::sort(record.members, {}, &MemberStatus::id);
  return record;
}

}  // namespace tenure::server::http
