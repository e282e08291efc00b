#include "core/lock_table.hpp"

#include <algorithm>
#include <cassert>
#include <iterator>
#include <set>
#include <span>
#include <utility>

#include "core/usage.hpp"

namespace tenure::core {
namespace {

std::size_t index_of(LockMode mode) {
  return static_cast<std::size_t>(mode);
}

bool has_item_at(std::span<const Item> items, const PlaceView& place) {
  return std::ranges::any_of(items, [&](const Item& item) { return item.is_at(place); });
}

/// The same thing, in whatever mode.
bool is_like(const Item& left, const Item& right) {
  if (left.name != right.name || left.claim.index() != right.claim.index()) {
    return false;
  }
  const auto* keys = std::get_if<Keys>(&left.claim);
  return keys == nullptr || keys->range == std::get<Keys>(right.claim).range;
}

/// Nobody behind such a load can be admitted.
bool is_full(const Lock& lock, const Load& ahead) {
  const auto exclusive = index_of(LockMode::exclusive);
  const auto held = lock.held();
  return held.modes[exclusive] + ahead.modes[exclusive] > 0 ||
         (lock.capacity() > 0 && held.permits + ahead.permits >= lock.capacity());
}

/// May anybody go who is not among those `ahead`? Somebody who upgrades may in any case.
bool lets_in_more(const Lock& lock, const Load& ahead) {
  const auto held = lock.held();
  if (lock.capacity() > 0) {
    return held.permits + ahead.permits < lock.capacity();
  }
  return std::ranges::any_of(all_lock_modes, [&](LockMode mode) {
    return lock.queued().modes[index_of(mode)] > ahead.modes[index_of(mode)] && held.admits(mode) &&
           ahead.admits(mode);
  });
}

/// Beside all holders but the one to be strengthened, and all who wait ahead.
bool admits_keys(const Wait& wanted, const Keys& keys, const RangeIndex& ranges) {
  return ranges.held.visit_overlapping(keys.range, [&](const RangeIndex::Held& held) {
    return held.token == wanted.upgrades || compatible_with(held.mode, keys.mode);
  }) && ranges.queued.visit_overlapping(keys.range, [&](const RangeIndex::Queued& other) {
    return !(other.turn < wanted.turn()) || compatible_with(other.mode, keys.mode);
  });
}

}  // namespace

const Lock* LockTable::find(const PlaceView& place) const {
  return locks_.find(place);
}

const Hold* LockTable::find(FencingToken token) const {
  const auto* hold = holds_.find(token);
  return hold == nullptr ? nullptr : &**hold;
}

const Wait* LockTable::find(Revision ticket) const {
  const auto* wait = waits_.find(ticket);
  return wait == nullptr ? nullptr : &**wait;
}

const LockTable::Owned& LockTable::owned(LeaseId lease) const {
  static const Owned nothing;
  const auto it = owners_.find(lease);
  return it == owners_.end() ? nothing : it->second;
}

bool LockTable::admits(const Wait& wanted) const {
  return std::ranges::all_of(wanted.items, [&](const Item& item) { return admits(wanted, item); });
}

bool LockTable::admits(const Wait& wanted, const Item& item) const {
  const auto place = item.place_view();
  const auto* lock = find(place);
  return lock == nullptr || admits(wanted, item, *lock, load_before(*lock, place, wanted.turn()));
}

bool LockTable::admits(const Wait& wanted, const Item& item, const Lock& lock,
                       const Load& ahead) const {
  if (const auto* some = std::get_if<Permits>(&item.claim)) {
    return lock.held().permits + ahead.permits + some->wanted <= lock.capacity();
  }
  if (const auto* keys = std::get_if<Keys>(&item.claim)) {
    return admits_keys(wanted, *keys, lock.ranges());
  }
  const auto mode = std::get<Whole>(item.claim).mode;
  auto held = lock.held();
  if (wanted.upgrades && lock.has_holder(*wanted.upgrades)) {
    held.remove(find(*wanted.upgrades)->items.front().claim);
  }
  return held.admits(mode) && ahead.admits(mode);
}

Load LockTable::load_before(const Lock& lock, const PlaceView& place, Turn turn) const {
  if (lock.queue().empty() || place.kind == PlaceKind::space) {
    return {};
  }
  if (lock.queue().back() < turn) {
    return lock.queued();
  }
  Load load;
  for (const auto& other : lock.queue()) {
    if (!(other < turn) || is_full(lock, load)) {
      break;
    }
    for (const auto& item : find(other.ticket)->items) {
      if (item.is_at(place)) {
        load.add(item.claim);
      }
    }
  }
  return load;
}

const Hold* LockTable::own_hold(LeaseId lease, const Item& like) const {
  const auto* lock = find(like.place_view());
  if (lock == nullptr) {
    return nullptr;
  }
  const auto last_of = [&](const auto& tokens) -> const Hold* {
    for (auto it = tokens.rbegin(); it != tokens.rend(); ++it) {
      const auto& hold = *find(*it);
      if (hold.lease == lease &&
          std::ranges::any_of(hold.items, [&](const Item& item) { return is_like(item, like); })) {
        return &hold;
      }
    }
    return nullptr;
  };
  const auto& mine = owned(lease).holds;
  return mine.size() < lock->holds().size() ? last_of(mine) : last_of(lock->holds());
}

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
  added = Shared(std::move(hold));
}

void LockTable::attach(const Hold& hold, const Item& item, Revision when) {
  ++held_[kind_of(item.claim)];
  record_of(item).add({.token = hold.token, .claim = item.claim}, when);
}

Lock& LockTable::record_of(const Item& item) {
  return locks_[item.place()];
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
  added = Shared(std::move(wait));
}

Hold LockTable::remove(FencingToken token, Revision when) {
  auto hold = *find(token);
  holds_.erase(token);
  auto& owner = owners_.at(hold.lease);
  owner.holds.erase(token);
  owner.items -= hold.items.size();
  owner.bytes -= bytes_of(hold);
  disown(hold.lease);
  for (std::size_t i = 0; i < hold.items.size(); ++i) {
    detach(token, std::span(hold.items).subspan(i + 1), hold.items[i], when);
  }
  return hold;
}

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

void LockTable::detach(FencingToken token, std::span<const Item> left, const Item& item,
                       Revision when) {
  --held_[kind_of(item.claim)];
  const auto place = item.place_view();
  auto& lock = *locks_.edit(place);
  lock.remove({.token = token, .claim = item.claim}, when);
  if (!has_item_at(left, place)) {
    lock.remove_holder(token);
  }
  if (lock.is_free()) {
    locks_.erase(place);
  }
}

Wait LockTable::remove(Revision ticket) {
  auto wait = *find(ticket);
  waits_.erase(ticket);
  auto& owner = owners_.at(wait.lease);
  owner.waits.erase(ticket);
  owner.items -= wait.items.size();
  owner.bytes -= bytes_of(wait);
  disown(wait.lease);
  for (const auto& item : wait.items) {
    locks_.edit(item.place_view())->leave(wait.turn(), item.claim);
  }
  for (const auto& item : wait.items) {
    drop_if_free(item.place_view());
  }
  return wait;
}

void LockTable::drop_if_free(const PlaceView& place) {
  const auto* lock = find(place);
  if (lock != nullptr && lock->is_free()) {
    locks_.erase(place);
  }
}

void LockTable::disown(LeaseId lease) {
  const auto it = owners_.find(lease);
  if (it->second.holds.empty() && it->second.waits.empty()) {
    owners_.erase(it);
  }
}

void LockTable::set_count(FencingToken token, std::uint32_t count) {
  holds_.edit(token)->edit().count = count;
}

void LockTable::strengthen(const Wait& wait, FencingToken token, ClusterTime now) {
  assert(wait.upgrades.has_value());
  auto hold = *find(*wait.upgrades);
  holds_.erase(hold.token);
  locks_.edit(wait.items.front().place_view())
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
  holds_[token] = Shared(std::move(hold));
}

void LockTable::weaken(FencingToken token, LockMode mode, Revision when) {
  auto& item = holds_.edit(token)->edit().items.front();
  const auto before = item.claim;
  set_mode(item, mode);
  --held_[kind_of(before)];
  ++held_[kind_of(item.claim)];
  locks_.edit(item.place_view())
      ->replace({.token = token, .claim = before}, {.token = token, .claim = item.claim}, when);
}

void LockTable::admit_waiters(const PlaceView& place, const Grant& grant) {
  Load ahead;
  std::size_t left_behind = 0;
  // A grant may move the record of the lock, which lives on: it has a holder then.
  for (const auto* lock = find(place); lock != nullptr && left_behind < lock->queue().size();
       lock = find(place)) {
    const auto turn = lock->queue()[left_behind];
    if (turn.rank != Rank::upgrade && !lets_in_more(*lock, ahead)) {
      return;
    }
    const auto& wait = *find(turn.ticket);
    if (may_go(wait, place, ahead)) {
      // It takes away its own turn only.
      grant(turn.ticket);
      continue;
    }
    for (const auto& item : wait.items) {
      if (item.is_at(place)) {
        ahead.add(item.claim);
      }
    }
    ++left_behind;
  }
}

bool LockTable::may_go(const Wait& wait, const PlaceView& place, const Load& ahead) const {
  const auto& lock = *find(place);
  return std::ranges::all_of(wait.items, [&](const Item& item) {
    return item.is_at(place) ? admits(wait, item, lock, ahead) : admits(wait, item);
  });
}

void LockTable::admit_waiters(const PlaceView& space, const std::vector<BytesRange>& freed,
                              const Grant& grant) {
  const auto* lock = find(space);
  if (lock == nullptr) {
    return;
  }
  std::set<Turn> candidates;
  for (const auto& range : freed) {
    lock->ranges().queued.visit_overlapping(range, [&](const RangeIndex::Queued& queued) {
      candidates.insert(queued.turn);
      return true;
    });
  }
  for (const auto& turn : candidates) {
    if (admits(*find(turn.ticket))) {
      grant(turn.ticket);
    }
  }
}

void LockTable::set_counters(const PlaceView& place, const Lock::Counters& counters) {
  locks_.edit(place)->set_counters(counters);
}

}  // namespace tenure::core
