#include "server/http/records.hpp"

#include <algorithm>
#include <iterator>

namespace tenure::server::http {
namespace {

// In lists; a page of its own has more.
constexpr Depth in_lists{.holders = 10, .waiters = 0};
constexpr std::size_t items_of_lease_max = 1000;

HoldRecord copy_hold(const View& view, const core::Hold& hold, const core::Item& item) {
  return {.claim = item.claim,
          .token = hold.token,
          .create_revision = hold.create_revision,
          .lease = hold.lease,
          .request = hold.request,
          .owner = hold.owner,
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
          .metadata = wait.metadata,
          .waited = view.now - wait.since,
          .is_upgrade = wait.upgrades.has_value()};
}

/// A hold or wait of several ranges of a space is several holders there.
template <class Record, class Add>
void each_item_at(const Record& record, const core::Place& place, Add add) {
  for (const auto& item : record.items) {
    if (item.is_at(place)) {
      add(item);
    }
  }
}

LockRecord copy_head(const core::Place& place, const core::Lock& lock) {
  return {.place = place,
          .capacity = lock.capacity(),
          .create_revision = lock.create_revision(),
          .mod_revision = lock.mod_revision(),
          .version = lock.version(),
          .holder_count = lock.holds().size(),
          .waiter_count = lock.queue().size()};
}

LockRecord copy(const View& view, const core::Place& place, const core::Lock& lock, Depth depth) {
  auto record = copy_head(place, lock);
  const auto& table = view.state.locks;
  for (const auto token : lock.holds()) {
    if (record.holders.size() >= depth.holders) {
      break;
    }
    const auto& hold = *table.find(token);
    each_item_at(hold, place, [&](const core::Item& item) {
      record.holders.push_back(copy_hold(view, hold, item));
    });
  }
  std::optional<core::Revision> before;
  std::size_t position = 0;
  for (const auto& turn : lock.queue()) {
    if (record.queue.size() >= depth.waiters) {
      break;
    }
    const auto& wait = *table.find(turn.ticket);
    ++position;
    each_item_at(wait, place, [&](const core::Item& item) {
      record.queue.push_back(copy_wait(view, wait, item));
      record.queue.back().position = position;
      record.queue.back().predecessor = before;
    });
    before = turn.ticket;
  }
  return record;
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
          .address = lease.address,
          .hold_count = owned.holds.size(),
          .wait_count = owned.waits.size()};
}

}  // namespace

LockPage copy_locks(const View& view, const LockQuery& query) {
  LockPage page{.revision = view.state.revision};
  const auto& locks = view.state.locks.locks();
  const core::Place first{.name = query.prefix};
  auto it = query.after && *query.after >= first ? locks.upper_bound(*query.after)
                                                 : locks.lower_bound(first);
  for (; it != locks.end() && it->first.name.starts_with(query.prefix); ++it) {
    if (page.records.size() == query.limit) {
      page.next = page.records.back().place;
      break;
    }
    page.records.push_back(copy(view, it->first, it->second, in_lists));
  }
  return page;
}

std::optional<LockRecord> copy_lock(const View& view, const core::Place& place, Depth depth) {
  const auto* lock = view.state.locks.find(place);
  return lock == nullptr ? std::nullopt : std::optional(copy(view, place, *lock, depth));
}

LeasePage copy_leases(const View& view, core::LeaseId after, std::size_t limit) {
  LeasePage page{.revision = view.state.revision};
  const auto& leases = view.state.leases.all();
  for (auto it = leases.upper_bound(after); it != leases.end(); ++it) {
    if (page.records.size() == limit) {
      page.next = page.records.back().id;
      break;
    }
    page.records.push_back(copy_lease_head(view, *it->second));
  }
  return page;
}

std::optional<LeaseRecord> copy_lease(const View& view, core::LeaseId id) {
  const auto* lease = view.state.leases.find(id);
  if (lease == nullptr) {
    return std::nullopt;
  }
  auto record = copy_lease_head(view, *lease);
  const auto& table = view.state.locks;
  const auto entry = [&](const core::Item& item) -> LockRecord& {
    const auto place = item.place();
    record.locks.push_back(copy_head(place, *table.find(place)));
    return record.locks.back();
  };
  for (const auto token : table.owned(id).holds) {
    const auto& hold = *table.find(token);
    for (const auto& item : hold.items) {
      if (record.locks.size() < items_of_lease_max) {
        entry(item).holders.push_back(copy_hold(view, hold, item));
      }
    }
  }
  for (const auto ticket : table.owned(id).waits) {
    const auto& wait = *table.find(ticket);
    for (const auto& item : wait.items) {
      if (record.locks.size() < items_of_lease_max) {
        entry(item).queue.push_back(copy_wait(view, wait, item));
      }
    }
  }
  return record;
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
  ClusterRecord record{.log = view.log, .members = {view.members.begin(), view.members.end()}};
  std::ranges::sort(record.members, {}, &MemberStatus::id);
  return record;
}

}  // namespace tenure::server::http
