#include "lock_manager/range_table.hpp"

#include <algorithm>

#include <absl/container/flat_hash_set.h>

#include "sys/fibonacci.hpp"

namespace tenure::detail {

namespace {

/// Slot of an entry that was granted to a waiter, and released before the waiter claimed it.
constexpr std::uint32_t released_slot = no_slot - 1;

}  // namespace

template <class Keys>
RangeTable<Keys>::RangeTable(std::size_t shards, RangeKind kind, const Limits& limits)
    : shards_(shards), kind_(kind), limits_(limits) {}

template <class Keys>
auto RangeTable<Keys>::shard_of(ResourceId space) noexcept -> Shard& {
  // Bits from 32 on, because a multiplicative hash mixes its low bits badly.
  return shards_[(sys::fibonacci_hash(space.get()) >> 32U) & (shards_.size() - 1)];
}

template <class Keys>
auto RangeTable<Keys>::Shard::find(ResourceId space) -> Space* {
  const auto found = spaces.find(space.get());
  return found == spaces.end() ? nullptr : found->second.get();
}

template <class Keys>
auto RangeTable<Keys>::Shard::find_or_make(ResourceId space) -> Space& {
  std::unique_ptr<Space>& found = spaces[space.get()];
  if (found == nullptr) {
    found = std::make_unique<Space>();
  }
  return *found;
}

template <class Keys>
void RangeTable<Keys>::Shard::remove_if_unused(ResourceId space) {
  // Keeps a few empty spaces, which are reused when single transactions use them in turn.
  constexpr std::size_t kept_max = 8;
  if (spaces.size() <= kept_max) {
    return;
  }
  const auto found = spaces.find(space.get());
  if (found->second->tree.empty()) {
    spaces.erase(found);
  }
}

template <class Keys>
bool RangeTable<Keys>::precedes(const Entry& one, const Entry& other) noexcept {
  return one.upgrade != other.upgrade ? one.upgrade : one.order < other.order;
}

template <class Keys>
bool RangeTable<Keys>::blocks(const Entry& other, const Entry& self) noexcept {
  return other.txn != self.txn && !compatible_with(other.mode, self.mode) &&
         (other.is_held() || precedes(other, self));
}

// One search of the tree answers three questions: which mode the transaction already holds on a
// range that contains this one (then the request is an upgrade), whether a holder blocks it, and
// whether a waiter does. An upgrade is blocked by other upgrades only, since all other waiters wait
// for this holder anyway.
template <class Keys>
auto RangeTable<Keys>::find_conflict(const Space& space, TxnId txn, const Range& range,
                                     LockMode mode) -> Conflict {
  Conflict conflict;
  bool is_covered = false;
  bool behind_upgrade = false;
  bool behind_other = false;
  std::optional<LockMode> own;
  space.tree.visit_overlapping(range, [&](const Entry* other) {
    // A range of the transaction that only overlaps is no upgrade, and never a conflict.
    if (other->txn == txn && other->range.contains(range)) {
      if (other->is_held()) {
        own = own ? join(*own, other->mode) : other->mode;
        is_covered = covers(*own, mode);
      } else if (conflict.order == 0 || other->order < conflict.order) {
        conflict.order = other->order;
      }
    } else if (other->txn != txn && !compatible_with(other->mode, mode)) {
      conflict.blocked = conflict.blocked || other->is_held();
      behind_upgrade = behind_upgrade || other->upgrade;
      behind_other = true;
    }
    return true;
  });
  conflict.upgrade = own.has_value();
  if (!is_covered) {
    conflict.blocked = conflict.blocked || (conflict.upgrade ? behind_upgrade : behind_other);
  }
  return conflict;
}

// Every acquisition is an entry of its own, also one inside a held range, so that each can be
// released on its own.
template <class Keys>
Attempt RangeTable<Keys>::acquire(Txn& txn, const Keys& keys, LockMode mode, Waiter* waiter) {
  Shard& shard = shard_of(keys.space);
  const sys::LatchGuard guard(shard.latch);
  Space& space = shard.find_or_make(keys.space);
  const Conflict conflict = find_conflict(space, txn.id, keys.range, mode);
  if (conflict.blocked && waiter == nullptr) {
    return Attempt::blocked;
  }
  if (txn.lock_count >= limits_.locks_per_transaction_max ||
      (conflict.blocked && space.waiting >= limits_.waiters_per_lock_max)) {
    shard.remove_if_unused(keys.space);
    return Attempt::exhausted;
  }

  auto entry = std::make_unique<Entry>(txn.id, keys, mode);
  // In the tree also while it waits, so that later requests find it in the same search.
  space.tree.insert(keys.range, entry.get());
  entry->order = space.next_order++;
  if (!conflict.blocked) {
    auto& list = txn.list(kind_);
    entry->slot = static_cast<std::uint32_t>(list.size());
    list.push_back(std::move(entry));
    ++txn.lock_count;
    return Attempt::acquired;
  }
  if (conflict.order != 0) {
    // Queued with the earlier wait of its transaction: a waiter between the two could wait for the
    // first and block the second.
    entry->order = conflict.order;
  }
  entry->slot = no_slot;
  entry->upgrade = conflict.upgrade;
  entry->waiter = waiter;
  waiter->upgrade = conflict.upgrade;
  waiter->entry = std::move(entry);
  ++space.waiting;
  return Attempt::queued;
}

// The last acquired entry of exactly this range: entries of one range are released in reverse
// order.
template <class Keys>
auto RangeTable<Keys>::find_held(const Space& space, TxnId txn, const Range& range) -> Entry* {
  Entry* last = nullptr;
  space.tree.visit_overlapping(range, [&](Entry* entry) {
    const bool fits = entry->txn == txn && entry->is_held() && entry->range == range;
    if (fits && (last == nullptr || last->order <= entry->order)) {
      last = entry;
    }
    return true;
  });
  return last;
}

// An entry that was granted to a waiter belongs to that waiter until it is claimed. It is marked as
// released, and the waiter finds that when it claims it.
template <class Keys>
bool RangeTable<Keys>::release(Txn& txn, const Keys& keys, Wakes& wakes) {
  Entry* entry = nullptr;
  {
    Shard& shard = shard_of(keys.space);
    const sys::LatchGuard guard(shard.latch);
    Space* const space = shard.find(keys.space);
    entry = space == nullptr ? nullptr : find_held(*space, txn.id, keys.range);
    if (entry == nullptr) {
      return false;
    }
    remove_held(shard, *entry, wakes);
  }
  if (entry->slot == no_slot) {
    entry->slot = released_slot;  // owned by its waiter, which has not claimed it
  } else {
    drop_from_list(txn, *entry);
  }
  return true;
}

template <class Keys>
void RangeTable<Keys>::remove_held(Shard& shard, Entry& held, Wakes& wakes) {
  Space& space = *shard.find(held.space);
  space.tree.erase(held.range, &held);
  grant_waiters(space, held.range, wakes);
  shard.remove_if_unused(held.space);
}

template <class Keys>
void RangeTable<Keys>::drop_from_list(Txn& txn, const Entry& entry) {
  auto& list = txn.list(kind_);
  const std::uint32_t slot = entry.slot;
  // The last entry moves into the free slot.
  if (slot + 1 != list.size()) {
    list[slot] = std::move(list.back());
    list[slot]->slot = slot;
  }
  list.pop_back();
  --txn.lock_count;
}

template <class Keys>
std::size_t RangeTable<Keys>::release_last(Txn& txn, std::size_t at_most, Wakes& wakes) {
  auto& list = txn.list(kind_);
  const std::size_t count = std::min(list.size(), at_most);
  for (std::size_t i = 0; i < count; ++i) {
    const std::unique_ptr<RangeEntry> last = std::move(list.back());
    list.pop_back();
    auto& entry = static_cast<Entry&>(*last);
    Shard& shard = shard_of(entry.space);
    const sys::LatchGuard guard(shard.latch);
    remove_held(shard, entry, wakes);
  }
  txn.lock_count -= count;
  return count;
}

template <class Keys>
Result<void> RangeTable<Keys>::downgrade(Txn& txn, const Keys& keys, LockMode mode, Wakes& wakes) {
  Shard& shard = shard_of(keys.space);
  const sys::LatchGuard guard(shard.latch);
  Space* const space = shard.find(keys.space);
  Entry* const entry = space == nullptr ? nullptr : find_held(*space, txn.id, keys.range);
  if (entry == nullptr) {
    return fail(Errc::not_held);
  }
  if (!covers(entry->mode, mode)) {
    return fail_downgrade(entry->mode, mode);
  }
  entry->mode = mode;
  grant_waiters(*space, entry->range, wakes);
  return {};
}

// Only waits that overlap the freed range can have become admissible. In queue order, because each
// grant may block later ones.
template <class Keys>
void RangeTable<Keys>::grant_waiters(Space& space, const Range& freed, Wakes& wakes) {
  if (space.waiting == 0) {
    return;
  }
  std::vector<Entry*> waiting;
  space.tree.visit_overlapping(freed, [&](Entry* entry) {
    if (!entry->is_held()) {
      waiting.push_back(entry);
    }
    return true;
  });
  std::ranges::sort(waiting, [](const Entry* a, const Entry* b) { return precedes(*a, *b); });
  for (Entry* const entry : waiting) {
    const bool is_free = space.tree.visit_overlapping(
        entry->range, [&](const Entry* other) { return !blocks(*other, *entry); });
    if (is_free) {
      grant(space, *entry, wakes);
    }
  }
}

template <class Keys>
void RangeTable<Keys>::grant(Space& space, Entry& entry, Wakes& wakes) {
  --space.waiting;
  // `upgrade` orders waiting entries only.
  entry.upgrade = false;
  std::exchange(entry.waiter, nullptr)->complete(WaitState::granted, wakes);
}

template <class Keys>
Waiter* RangeTable<Keys>::find_wait(const Txn& txn, const Keys& keys) const {
  for (Waiter* const waiter : txn.waits) {
    if (waiter->table == this && waiter->entry->space == keys.space &&
        entry_of(*waiter).range == keys.range) {
      return waiter;
    }
  }
  return nullptr;
}

// Conservative: any waiter in a space of the transaction counts, and so does a list of more than 64
// entries.
template <class Keys>
bool RangeTable<Keys>::may_have_waiters(Txn& txn) {
  constexpr std::size_t looked_at_max = 64;
  const auto& list = txn.list(kind_);
  return list.size() > looked_at_max || std::ranges::any_of(list, [this](const auto& entry) {
           Shard& shard = shard_of(entry->space);
           const sys::LatchGuard guard(shard.latch);
           return shard.find(entry->space)->waiting > 0;
         });
}

// The waiter may have been granted by another thread before this one latched the shard.
template <class Keys>
bool RangeTable<Keys>::leave(Waiter& waiter, WaitState outcome, Wakes& wakes) {
  Entry& entry = entry_of(waiter);
  Shard& shard = shard_of(entry.space);
  const sys::LatchGuard guard(shard.latch);
  if (!waiter.is_pending()) {
    return false;
  }
  const ResourceId where = entry.space;
  Space& space = *shard.find(where);
  space.tree.erase(entry.range, &entry);
  --space.waiting;
  grant_waiters(space, entry.range, wakes);
  shard.remove_if_unused(where);
  // Last: the thread of the waiter may destroy it as soon as it is completed.
  waiter.complete(outcome, wakes);
  return true;
}

template <class Keys>
bool RangeTable<Keys>::claim(Txn& txn, Waiter& waiter) {
  ++txn.work;
  // Another thread of the transaction has released the range since the grant.
  if (waiter.entry->slot == released_slot) {
    return false;
  }
  auto& list = txn.list(kind_);
  waiter.entry->slot = static_cast<std::uint32_t>(list.size());
  list.push_back(std::move(waiter.entry));
  ++txn.lock_count;
  return true;
}

template <class Keys>
bool RangeTable<Keys>::undo(Txn& /*txn*/, Waiter& waiter, Wakes& wakes) {
  Entry& entry = entry_of(waiter);
  if (entry.slot == released_slot) {
    return false;
  }
  Shard& shard = shard_of(entry.space);
  const sys::LatchGuard guard(shard.latch);
  remove_held(shard, entry, wakes);
  entry.slot = released_slot;
  return true;
}

// Leaves out transactions that are reachable through the closest exclusive waiter ahead, if its
// range contains this one: in a queue of n writers each wait then has one edge instead of n.
template <class Keys>
void RangeTable<Keys>::blockers_of(const Waiter& waiter, std::vector<TxnId>& blockers) {
  const Entry& self = entry_of(waiter);
  Shard& shard = shard_of(self.space);
  const sys::LatchGuard guard(shard.latch);
  if (!waiter.is_pending()) {
    return;
  }
  std::vector<const Entry*> conflicting;
  const Entry* closest = nullptr;  // closest exclusive waiter ahead: it waits for all others
  shard.find(self.space)->tree.visit_overlapping(self.range, [&](const Entry* other) {
    if (!blocks(*other, self)) {
      return true;
    }
    conflicting.push_back(other);
    const bool stands_for_all =
        !other->is_held() && is_exclusive(other->mode) && other->range.contains(self.range);
    if (stands_for_all && (closest == nullptr || precedes(*closest, *other))) {
      closest = other;
    }
    return true;
  });
  for (const Entry* const other : conflicting) {
    const bool is_implied =
        closest != nullptr && other != closest && (other->is_held() || precedes(*other, *closest));
    if (!is_implied) {
      blockers.push_back(other->txn);
    }
  }
}

template <class Keys>
bool RangeTable<Keys>::admit_out_of_turn(Waiter& waiter, Wakes& wakes) {
  Entry& self = entry_of(waiter);
  Shard& shard = shard_of(self.space);
  const sys::LatchGuard guard(shard.latch);
  Space& space = *shard.find(self.space);
  const bool no_holder = space.tree.visit_overlapping(
      self.range, [&](const Entry* other) { return !(other->is_held() && blocks(*other, self)); });
  if (no_holder) {
    grant(space, self, wakes);
  }
  return no_holder;
}

template <class Keys>
std::optional<LockMode> RangeTable<Keys>::mode_held(TxnId txn, const Keys& keys) {
  Shard& shard = shard_of(keys.space);
  const sys::LatchGuard guard(shard.latch);
  std::optional<LockMode> mode;
  if (const Space* const space = shard.find(keys.space); space != nullptr) {
    space->tree.visit_overlapping(keys.range, [&](const Entry* entry) {
      if (entry->txn == txn && entry->is_held() && entry->range == keys.range) {
        mode = mode ? join(*mode, entry->mode) : entry->mode;
      }
      return true;
    });
  }
  return mode;
}

template <class Keys>
std::size_t RangeTable<Keys>::holder_count(const Keys& keys) {
  Shard& shard = shard_of(keys.space);
  const sys::LatchGuard guard(shard.latch);
  absl::flat_hash_set<std::uint64_t> holders;
  if (const Space* const space = shard.find(keys.space); space != nullptr) {
    space->tree.visit_overlapping(keys.range, [&](const Entry* entry) {
      if (entry->is_held() && entry->range == keys.range) {
        holders.insert(entry->txn.get());
      }
      return true;
    });
  }
  return holders.size();
}

template <class Keys>
std::size_t RangeTable<Keys>::range_count(ResourceId space) {
  Shard& shard = shard_of(space);
  const sys::LatchGuard guard(shard.latch);
  const Space* const found = shard.find(space);
  return found == nullptr ? 0 : found->tree.size() - found->waiting;
}

template <class Keys>
std::string RangeTable<Keys>::describe(const Waiter& waiter) const {
  return to_string(Target(keys_of(entry_of(waiter))));
}

template <class Keys>
void RangeTable<Keys>::snapshot(std::vector<LockView>& views) {
  for (Shard& shard : shards_) {
    std::map<std::string, LockView> ranges;
    {
      const sys::LatchGuard guard(shard.latch);
      for (const auto& [id, space] : shard.spaces) {
        snapshot_space(*space, ranges);
      }
    }
    for (auto& [text, view] : ranges) {
      view.target = text;
      views.push_back(std::move(view));
    }
  }
}

template <class Keys>
void RangeTable<Keys>::snapshot_space(const Space& space, std::map<std::string, LockView>& views) {
  const auto now = std::chrono::steady_clock::now();
  std::vector<const Entry*> entries;
  space.tree.visit_all([&](const Entry* entry) {
    entries.push_back(entry);
    return true;
  });
  std::ranges::sort(entries, [](const Entry* a, const Entry* b) { return precedes(*a, *b); });
  for (const Entry* const entry : entries) {
    LockView& view = views[to_string(Target(keys_of(*entry)))];
    if (entry->is_held()) {
      view.holders.push_back({.txn = entry->txn, .mode = entry->mode});
    } else {
      view.waiters.push_back(view_of_waiter(*entry->waiter, now));
    }
  }
}

template class RangeTable<KeysOf>;
template class RangeTable<BytesOf>;

}  // namespace tenure::detail
