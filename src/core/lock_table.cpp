#include "core/lock_table.hpp"

#include <algorithm>
#include <cassert>
#include <iterator>
#include <span>
#include <utility>

#include "core/items_at.hpp"
#include "core/usage.hpp"

namespace tenure::core {
namespace {

bool has_item_at(std::span<const Item> items, const ResourceView& resource) {
  return !items_at(items, resource).empty();
}

/// Whether two items claim the same lock, range or semaphore, in any mode.
bool is_like(const Item& left, const Item& right) {
  if (left.name != right.name || left.claim.index() != right.claim.index()) {
    return false;
  }
  const auto* keys = std::get_if<Keys>(&left.claim);
  return keys == nullptr || keys->range == std::get<Keys>(right.claim).range;
}

}  // namespace

const Lock* LockTable::find(const ResourceView& resource) const {
  return locks_.find(resource);
}

const Hold* LockTable::find(FencingToken token) const {
  const auto* hold = holds_.find(token);
  return hold == nullptr ? nullptr : &**hold;
}

const Wait* LockTable::find(Revision ticket) const {
  const auto* wait = waits_.find(ticket);
  return wait == nullptr ? nullptr : &**wait;
}

// Most leases of a large store hold nothing at times, so they have no entry; a shared empty one
// stands for it.
const LockTable::Owned& LockTable::owned(LeaseId lease) const {
  static const Owned nothing;
  const auto it = owners_.find(lease);
  return it == owners_.end() ? nothing : it->second;
}

// Scans the shorter list: the holds of the lease, or the holders of the lock. Backwards, because
// the latest hold counts.
const Hold* LockTable::own_hold(LeaseId lease, const Item& like, Visits& visits) const {
  const auto* lock = find(like.resource_view());
  if (lock == nullptr) {
    return nullptr;
  }
  const auto last_of = [&](const auto& tokens) -> const Hold* {
    for (auto it = tokens.rbegin(); it != tokens.rend(); ++it) {
      const auto& hold = *find(*it);
      visits.add();
      if (hold.lease == lease &&
          std::ranges::any_of(items_at(hold.items, like.resource_view()),
                              [&](const Item& item) { return is_like(item, like); })) {
        return &hold;
      }
    }
    return nullptr;
  };
  const auto& mine = owned(lease).holds;
  return mine.size() < lock->holds().size() ? last_of(mine) : last_of(lock->holds());
}

// The caller has checked admission: the table itself accepts any hold, so that a snapshot can be
// read.
void LockTable::add(Hold hold, Revision when) {
  assert(!hold.items.empty());
  auto& owner = owners_[hold.lease];
  owner.holds.insert(hold.token);
  owner.items += hold.items.size();
  owner.bytes += bytes_of(hold);
  for (const auto& item : hold.items) {
    attach(hold, item, when);
  }
  auto& added = holds_[hold.token];
  added = CowPtr(std::move(hold));
}

void LockTable::attach(const Hold& hold, const Item& item, Revision when) {
  ++held_[kind_of(item.claim)];
  record_of(item).add({.token = hold.token, .claim = item.claim}, when);
}

Lock& LockTable::record_of(const Item& item) {
  return locks_[item.resource()];
}

void LockTable::add(Wait wait) {
  auto& owner = owners_[wait.lease];
  owner.waits.insert(wait.ticket);
  owner.items += wait.items.size();
  owner.bytes += bytes_of(wait);
  for (const auto& item : wait.items) {
    record_of(item).join(wait.turn(), item.claim);
  }
  auto& added = waits_[wait.ticket];
  added = CowPtr(std::move(wait));
}

Hold LockTable::remove(FencingToken token, Revision when) {
  auto hold = *find(token);
  holds_.erase(token);
  auto& owner = owners_.at(hold.lease);
  owner.holds.erase(token);
  owner.items -= hold.items.size();
  owner.bytes -= bytes_of(hold);
  drop_owned_if_empty(hold.lease);
  for (std::size_t i = 0; i < hold.items.size(); ++i) {
    detach(token, std::span(hold.items).subspan(i + 1), hold.items[i], when);
  }
  return hold;
}

// The hold of n items is edited in place: its other items keep their token.
Item LockTable::remove_item(FencingToken token, std::size_t index, Revision when) {
  if (find(token)->items.size() == 1) {
    return remove(token, when).items.front();
  }
  auto& hold = holds_.edit(token)->edit();
  auto item = std::move(hold.items.at(index));
  hold.items.erase(hold.items.begin() + static_cast<std::ptrdiff_t>(index));
  auto& owner = owners_.at(hold.lease);
  --owner.items;
  owner.bytes -= bytes_of(std::span(&item, 1));
  detach(token, hold.items, item, when);
  return item;
}

// A holder with several claims at one resource, such as two ranges, stays until the last of them is
// removed. A resource without holders and waits has no record.
void LockTable::detach(FencingToken token, std::span<const Item> left, const Item& item,
                       Revision when) {
  --held_[kind_of(item.claim)];
  const auto resource = item.resource_view();
  auto& lock = *locks_.edit(resource);
  lock.remove({.token = token, .claim = item.claim}, when);
  if (!has_item_at(left, resource)) {
    lock.remove_holder(token);
  }
  if (lock.is_free()) {
    locks_.erase(resource);
  }
}

// Leaves all queues before it drops any record: two items of the request may be at the same
// resource.
Wait LockTable::remove(Revision ticket) {
  auto wait = *find(ticket);
  waits_.erase(ticket);
  auto& owner = owners_.at(wait.lease);
  owner.waits.erase(ticket);
  owner.items -= wait.items.size();
  owner.bytes -= bytes_of(wait);
  drop_owned_if_empty(wait.lease);
  for (const auto& item : wait.items) {
    locks_.edit(item.resource_view())->leave(wait.turn(), item.claim);
  }
  for (const auto& item : wait.items) {
    drop_if_free(item.resource_view());
  }
  return wait;
}

void LockTable::drop_if_free(const ResourceView& resource) {
  const auto* lock = find(resource);
  if (lock != nullptr && lock->is_free()) {
    locks_.erase(resource);
  }
}

void LockTable::drop_owned_if_empty(LeaseId lease) {
  const auto it = owners_.find(lease);
  if (it->second.holds.empty() && it->second.waits.empty()) {
    owners_.erase(it);
  }
}

void LockTable::set_count(FencingToken token, std::uint32_t count) {
  holds_.edit(token)->edit().count = count;
}

// The hold moves to its new token, by which all tables are keyed. It gets owner and metadata of the
// upgrading request, and one more release.
void LockTable::upgrade(const Wait& wait, FencingToken token, ClusterTime now) {
  assert(wait.upgrades.has_value());
  auto hold = *find(*wait.upgrades);
  holds_.erase(hold.token);
  locks_.edit(wait.items.front().resource_view())
      ->replace({.token = hold.token, .claim = hold.items.front().claim},
                {.token = token, .claim = wait.items.front().claim}, Revision{token.get()});
  --held_[kind_of(hold.items.front().claim)];
  ++held_[kind_of(wait.items.front().claim)];
  auto& owner = owners_.at(hold.lease);
  owner.holds.erase(hold.token);
  owner.holds.insert(token);
  owner.bytes -= bytes_of(hold);
  hold.token = token;
  hold.items = wait.items;
  hold.owner = wait.owner;
  hold.metadata = wait.metadata;
  hold.acquired = now;
  ++hold.count;
  owner.bytes += bytes_of(hold);
  holds_[token] = CowPtr(std::move(hold));
}

void LockTable::downgrade(FencingToken token, LockMode mode, Revision when) {
  auto& item = holds_.edit(token)->edit().items.front();
  const auto before = item.claim;
  set_mode(item, mode);
  --held_[kind_of(before)];
  ++held_[kind_of(item.claim)];
  locks_.edit(item.resource_view())
      ->replace({.token = token, .claim = before}, {.token = token, .claim = item.claim}, when);
}

void LockTable::set_counters(const ResourceView& resource, const Lock::Counters& counters) {
  locks_.edit(resource)->set_counters(counters);
}

}  // namespace tenure::core
