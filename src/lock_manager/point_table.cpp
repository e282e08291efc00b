#include "lock_manager/point_table.hpp"

#include <bit>
#include <map>
#include <string_view>
#include <utility>

#include <tenure/lock_manager/target.hpp>

namespace tenure::detail {

template <PointKind kind>
PointTable<kind>::PointTable(const Setup& setup)
    : shards_(setup.shards),
      shift_(63U - static_cast<unsigned>(std::countr_zero(setup.shards))),
      limits_(setup.limits),
      names_(setup.names) {}

// In this order: a thin lock that the transaction can take or count; a thin lock that gets another
// holder without a conflict; a fat lock. A thin lock is inflated only for a waiter, or for a holder
// without room in the shard.
template <PointKind kind>
Attempt PointTable<kind>::acquire_slowly(PointShard& shard, Txn& txn, const Request& request) {
  const auto [id, mode, waiter] = request;
  shard.forget_unused_except(id);
  const PointShard::ThinLock thin = shard.find_thin(id, txn.id);
  const LockMode wanted = thin.mine != nullptr ? join(thin.mine->mode, mode) : mode;
  const bool is_thin = thin.mine != nullptr || thin.others != 0;
  const bool is_open = (conflicts_of(wanted) & thin.others) == 0;
  // Reentry or upgrade without a conflict. The lock is in the list already, so the limit of locks
  // does not apply.
  if (thin.mine != nullptr && is_open) {
    if (thin.mine->count == count_max) {
      return Attempt::exhausted;
    }
    thin.mine->mode = wanted;
    ++thin.mine->count;
    return Attempt::reacquired;
  }
  // An attempt without a waiter inflates nothing, so a failed try leaves no memory behind.
  if (!is_open && waiter == nullptr) {
    return Attempt::blocked;
  }

  const bool stays_thin = is_thin && is_open && shard.has_room();
  PointLock* const fat = !is_thin ? shard.find_fat(id) : stays_thin ? nullptr : &shard.inflate(id);
  if (fat == nullptr) {
    if (txn.lock_count >= limits_.locks_per_transaction_max) [[unlikely]] {
      return Attempt::exhausted;
    }
    // Index of the list entry that enter_into_list() appends.
    const auto slot = static_cast<std::uint32_t>(txn.list(kind).size());
    shard.add_thin(id, {.txn = txn.id, .slot = slot, .count = 1, .mode = mode});
    enter_into_list(txn, id);
    return Attempt::acquired;
  }
  const Attempt attempt = acquire_fat(*fat, txn, id, mode);
  return attempt == Attempt::blocked && waiter != nullptr ? enqueue(*fat, txn, *waiter) : attempt;
}

// The limit counts entries of the list, so a lock that the transaction holds already is exempt.
template <PointKind kind>
Attempt PointTable<kind>::acquire_fat(PointLock& lock, Txn& txn, std::uint64_t id, LockMode mode) {
  if (txn.lock_count >= limits_.locks_per_transaction_max && lock.holders().find(txn.id) == nullptr)
      [[unlikely]] {
    return Attempt::exhausted;
  }
  const auto slot = static_cast<std::uint32_t>(txn.list(kind).size());
  const Attempt attempt = lock.try_acquire(txn.id, mode, slot);
  if (attempt == Attempt::acquired) {
    enter_into_list(txn, id);
  }
  return attempt;
}

// The waiter keeps a reference to the name: the lock may be released by all holders, and its name
// must not be forgotten while it is waited for.
template <PointKind kind>
Attempt PointTable<kind>::enqueue(PointLock& lock, Txn& txn, Waiter& waiter) {
  if (lock.queue().size() >= limits_.waiters_per_lock_max) {
    return Attempt::exhausted;
  }
  Waiter* const earlier = find_wait(txn, waiter.resource);
  waiter.lock = &lock;
  lock.enqueue(waiter, earlier != nullptr && earlier->is_pending() ? earlier : nullptr);
  keep_name(waiter.resource);
  return Attempt::queued;
}

template <PointKind kind>
Waiter* PointTable<kind>::find_wait(const Txn& txn, std::uint64_t id) const {
  for (Waiter* const waiter : txn.waits) {
    if (waiter->table == this && waiter->resource == id) {
      return waiter;
    }
  }
  return nullptr;
}

// The latch of the shard is released before remove_slot(), which latches the shard of the lock that
// moves into the free slot: two shards are never latched at once.
template <PointKind kind>
bool PointTable<kind>::release_slowly(Txn& txn, std::uint64_t id, Wakes& wakes) {
  std::uint32_t slot = no_slot;
  {
    PointShard& shard = shard_of(id);
    const sys::LatchGuard guard(shard.latch);
    if (Holder* const thin = shard.find_thin(id, txn.id).mine; thin != nullptr) {
      if (thin->count > 1) {
        --thin->count;
        return true;
      }
      slot = thin->slot;
      shard.remove_thin(id, *thin);
    } else {
      PointLock* const fat = shard.find_fat(id);
      Holder* const self = fat == nullptr ? nullptr : fat->holders().find(txn.id);
      if (self == nullptr) {
        return false;
      }
      slot = fat->release_one(*self, wakes).value_or(no_slot);
      shard.remove_fat_if_unused(id, *fat);
    }
  }
  // Without a slot, the hold continues, or it was granted to a waiter that has not claimed it.
  if (slot != no_slot) {
    remove_slot(txn, slot);
  }
  return true;
}

// The last entry of the list has moved into the slot of a removed one.
template <PointKind kind>
void PointTable<kind>::move_slot(const Txn& txn, std::uint64_t id, std::uint32_t slot) {
  PointShard& shard = shard_of(id);
  const sys::LatchGuard guard(shard.latch);
  Holder* holder = shard.find_thin(id, txn.id).mine;
  if (holder == nullptr) {
    holder = shard.find_fat(id)->holders().find(txn.id);
  }
  holder->slot = slot;
}

// Releases all acquisitions of one lock at once, for release_all().
template <PointKind kind>
void PointTable<kind>::release_wholly(PointShard& shard, const Txn& txn, std::uint64_t id,
                                      Wakes& wakes) {
  if (Holder* const thin = shard.find_thin(id, txn.id).mine; thin != nullptr) {
    shard.remove_thin(id, *thin);
    return;
  }
  PointLock& fat = *shard.find_fat(id);
  fat.remove_holder(*fat.holders().find(txn.id), wakes);
  shard.remove_fat_if_unused(id, fat);
}

template <PointKind kind>
Result<void> PointTable<kind>::downgrade(Txn& txn, std::uint64_t id, LockMode mode, Wakes& wakes) {
  PointShard& shard = shard_of(id);
  const sys::LatchGuard guard(shard.latch);
  Holder* const thin = shard.find_thin(id, txn.id).mine;
  PointLock* const fat = thin != nullptr ? nullptr : shard.find_fat(id);
  Holder* const self = fat != nullptr ? fat->holders().find(txn.id) : thin;
  if (self == nullptr) {
    return fail(Errc::not_held);
  }
  if (!covers(self->mode, mode)) {
    return fail_downgrade(self->mode, mode);
  }
  if (fat != nullptr) {
    fat->downgrade(*self, mode, wakes);
  } else {
    self->mode = mode;
  }
  return {};
}

// Visits at most 64 locks: this runs before every wait, and the search that it may save visits more
// only if there are waiters.
template <PointKind kind>
bool PointTable<kind>::may_have_waiters(Txn& txn) {
  constexpr std::size_t looked_at_max = 64;
  const std::vector<std::uint64_t>& list = txn.list(kind);
  if (list.size() > looked_at_max) {
    return true;
  }
  for (const std::uint64_t id : list) {
    PointShard& shard = shard_of(id);
    const sys::LatchGuard guard(shard.latch);
    const PointLock* const fat = shard.find_fat(id);
    if (fat != nullptr && !fat->queue().empty()) {
      return true;
    }
  }
  return false;
}

// The waiter may have been granted by another thread before this one latched the shard.
template <PointKind kind>
bool PointTable<kind>::leave(Waiter& waiter, WaitState outcome, Wakes& wakes) {
  const std::uint64_t id = waiter.resource;
  {
    PointShard& shard = shard_of(id);
    const sys::LatchGuard guard(shard.latch);
    if (!waiter.is_pending()) {
      return false;
    }
    PointLock& fat = *waiter.lock;
    fat.leave(waiter, outcome, wakes);
    shard.remove_fat_if_unused(id, fat);
  }
  forget_name(id);
  return true;
}

// Another thread of the transaction may have released the lock since the grant, or acquired it
// again, which has added it to the list. In both cases the reference of the waiter to the name is
// redundant.
template <PointKind kind>
bool PointTable<kind>::claim(Txn& txn, Waiter& waiter) {
  ++txn.work;
  bool is_held = false;
  bool is_entered = false;
  {
    PointShard& shard = shard_of(waiter.resource);
    const sys::LatchGuard guard(shard.latch);
    PointLock* const fat = shard.find_fat(waiter.resource);
    Holder* const self = fat == nullptr ? nullptr : fat->holders().find(txn.id);
    is_held = self != nullptr;
    if (is_held && self->slot == no_slot) {
      self->slot = static_cast<std::uint32_t>(txn.list(kind).size());
      txn.list(kind).push_back(waiter.resource);
      ++txn.lock_count;
      is_entered = true;
    }
  }
  if (!is_entered) {
    forget_name(waiter.resource);
  }
  return is_held;
}

// The grant is reverted like a release, and a granted upgrade is downgraded to the mode before it.
template <PointKind kind>
bool PointTable<kind>::undo(Txn& txn, Waiter& waiter, Wakes& wakes) {
  const std::uint64_t id = waiter.resource;
  bool is_gone = false;
  std::uint32_t slot = no_slot;
  {
    PointShard& shard = shard_of(id);
    const sys::LatchGuard guard(shard.latch);
    PointLock* const fat = shard.find_fat(id);
    Holder* const self = fat == nullptr ? nullptr : fat->holders().find(txn.id);
    if (self != nullptr) {
      // A later acquisition may rely on the stronger mode, so revert it only if there was none.
      const bool falls_back = waiter.upgrade && self->count == waiter.count_then;
      const auto freed = fat->release_one(*self, wakes);
      is_gone = freed.has_value();
      slot = freed.value_or(no_slot);
      if (falls_back && !is_gone) {
        fat->downgrade(*self, waiter.before, wakes);
      }
      shard.remove_fat_if_unused(id, *fat);
    }
  }
  if (slot != no_slot) {
    remove_slot(txn, slot);
  }
  forget_name(id);
  return is_gone;
}

template <PointKind kind>
void PointTable<kind>::blockers_of(const Waiter& waiter, std::vector<TxnId>& blockers) {
  PointShard& shard = shard_of(waiter.resource);
  const sys::LatchGuard guard(shard.latch);
  if (waiter.is_pending()) {
    waiter.lock->blockers_of(waiter, blockers);
  }
}

template <PointKind kind>
bool PointTable<kind>::admit_out_of_turn(Waiter& waiter, Wakes& wakes) {
  PointShard& shard = shard_of(waiter.resource);
  const sys::LatchGuard guard(shard.latch);
  return waiter.lock->admit_out_of_turn(waiter, wakes);
}

template <PointKind kind>
std::optional<LockMode> PointTable<kind>::mode_held(TxnId txn, std::uint64_t id) {
  PointShard& shard = shard_of(id);
  const sys::LatchGuard guard(shard.latch);
  const Holder* holder = shard.find_thin(id, txn).mine;
  if (PointLock* const fat = shard.find_fat(id); fat != nullptr) {
    holder = fat->holders().find(txn);
  }
  return holder != nullptr ? std::optional(holder->mode) : std::nullopt;
}

template <PointKind kind>
std::size_t PointTable<kind>::holder_count(std::uint64_t id) {
  PointShard& shard = shard_of(id);
  const sys::LatchGuard guard(shard.latch);
  PointLock* const fat = shard.find_fat(id);
  return fat != nullptr ? fat->holders().size() : shard.count_thin(id);
}

template <PointKind kind>
std::string PointTable<kind>::text_of(std::uint64_t id) const {
  if constexpr (kind == PointKind::number) {
    return to_string(Target(ResourceId(id)));
  } else {
    const std::string name = names_->text(id);
    return to_string(Target(std::string_view(name)));
  }
}

template <PointKind kind>
std::string PointTable<kind>::describe(const Waiter& waiter) const {
  return text_of(waiter.resource);
}

// Consistent per shard, not across shards: a snapshot never stops the table.
template <PointKind kind>
void PointTable<kind>::snapshot(std::vector<LockView>& views) {
  const auto view_of = [](const Holder& holder) {
    return HolderView{.txn = holder.txn, .mode = holder.mode, .count = holder.count};
  };
  const auto now = std::chrono::steady_clock::now();
  for (PointShard& shard : shards_) {
    std::map<std::uint64_t, LockView> locks;
    const sys::LatchGuard guard(shard.latch);
    shard.visit([&](std::uint64_t id,
                    const Holder& holder) { locks[id].holders.push_back(view_of(holder)); },
                [&](std::uint64_t id, PointLock& lock) {
                  for (const Holder& holder : lock.holders()) {
                    locks[id].holders.push_back(view_of(holder));
                  }
                  for (const Waiter& waiter : lock.queue()) {
                    locks[id].waiters.push_back(view_of_waiter(waiter, now));
                  }
                });
    for (auto& [id, view] : locks) {
      view.target = text_of(id);
      views.push_back(std::move(view));
    }
  }
}

template class PointTable<PointKind::number>;
template class PointTable<PointKind::name>;

}  // namespace tenure::detail
