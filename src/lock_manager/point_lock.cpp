#include "lock_manager/point_lock.hpp"

#include <iterator>
#include <string>

namespace tenure::detail {

std::unexpected<Error> fail_downgrade(LockMode held, LockMode wanted) {
  return fail(Errc::invalid_argument, "cannot downgrade " + std::string(to_string(held)) + " to " +
                                          std::string(to_string(wanted)) +
                                          ": ask for a mode that it covers");
}

// A holder that requests another mode claims the join of both, and does not conflict with its own
// hold.
PointLock::Claimed PointLock::claim_of(LockMode mode, const Holder* self) const noexcept {
  if (self == nullptr) {
    return {.mode = mode, .against = held_.mask()};
  }
  return {.mode = join(self->mode, mode), .against = held_.mask_without(self->mode)};
}

// A request that its hold covers is only counted, whatever the queue contains: it would wait for
// waiters that wait for it. An upgrade has to respect waiting upgrades only, because all other
// waiters wait for this holder anyway. A new request has to respect the whole queue.
Attempt PointLock::try_acquire(TxnId txn, LockMode mode, std::uint32_t slot) {
  Holder* const self = holders_.find(txn);
  if (self != nullptr && self->count == count_max) {
    return Attempt::exhausted;
  }
  if (self == nullptr || !covers(self->mode, mode)) {
    const Claimed claimed = claim_of(mode, self);
    const ModeMask earlier = self != nullptr ? upgrading_.mask() : awaited_.mask();
    if ((conflicts_of(claimed.mode) & (claimed.against | earlier)) != 0) {
      return Attempt::blocked;
    }
    held_.add(claimed.mode);
    if (self == nullptr) {
      holders_.add({.txn = txn, .slot = slot, .count = 1, .mode = claimed.mode});
      return Attempt::acquired;
    }
    held_.remove(self->mode);
    self->mode = claimed.mode;
  }
  // No overflow: a hold at count_max was refused above.
  ++self->count;
  if (self->slot != no_slot) {
    return Attempt::reacquired;
  }
  // The hold was granted to a waiter that has not claimed it yet; now it has an entry in the list.
  self->slot = slot;
  return Attempt::acquired;
}

void PointLock::enqueue(Waiter& waiter, Waiter* sibling) {
  const Holder* const self = holders_.find(waiter.txn);
  // The mode is fixed now: a holder waits for the join of its mode and the requested one.
  waiter.mode = claim_of(waiter.wanted, self).mode;
  waiter.upgrade = self != nullptr;
  awaited_.add(waiter.mode);
  if (waiter.upgrade) {
    upgrading_.add(waiter.mode);
  }
  // Only among waits of the same class: an upgrade always goes to the front part of the queue.
  if (sibling != nullptr && sibling->upgrade == waiter.upgrade) {
    queue_.insert(std::next(queue_.iterator_to(*sibling)), waiter);
    return;
  }
  if (!waiter.upgrade) {
    queue_.push_back(waiter);
    return;
  }
  // Upgrades are in order of arrival, ahead of all other waits.
  auto behind = queue_.begin();
  while (behind != queue_.end() && behind->upgrade) {
    ++behind;
  }
  queue_.insert(behind, waiter);
}

// A reentrant holder releases once for each acquire; only the last release grants waiters.
std::optional<std::uint32_t> PointLock::release_one(Holder& holder, Wakes& wakes) {
  if (--holder.count > 0) {
    return std::nullopt;
  }
  const std::uint32_t slot = holder.slot;
  remove_holder(holder, wakes);
  return slot;
}

void PointLock::remove_holder(Holder& holder, Wakes& wakes) {
  held_.remove(holder.mode);
  holders_.remove(holder);
  grant_waiters(wakes);
}

void PointLock::downgrade(Holder& holder, LockMode mode, Wakes& wakes) {
  held_.remove(holder.mode);
  held_.add(mode);
  holder.mode = mode;
  grant_waiters(wakes);
}

void PointLock::leave(Waiter& waiter, WaitState outcome, Wakes& wakes) {
  unlink(waiter);
  waiter.complete(outcome, wakes);
  grant_waiters(wakes);
}

// One pass in queue order. `staying` collects the modes of waiters that stay: a later waiter may
// pass only those that it is compatible with. Ends at the first exclusive one, so a release with a
// long queue of writers costs O(1).
void PointLock::grant_waiters(Wakes& wakes) {
  ModeMask staying = 0;
  for (auto next = queue_.begin(); next != queue_.end();) {
    Waiter& waiter = *next;
    ++next;
    if (is_closed_to(waiter, staying)) {
      return;
    }
    const Claimed claimed = claim_of(waiter.mode, holders_.find(waiter.txn));
    if ((conflicts_of(claimed.mode) & (claimed.against | staying)) == 0) {
      grant(waiter, claimed.mode, wakes);
    } else {
      staying |= mask_of(waiter.mode);
    }
  }
}

bool PointLock::is_closed_to(const Waiter& waiter, ModeMask staying) const noexcept {
  const ModeMask exclusive = mask_of(LockMode::exclusive);
  if ((staying & exclusive) != 0) {
    return true;
  }
  return (held_.mask() & exclusive) != 0 && holders_.begin()->txn != waiter.txn;
}

// The hold has no slot until the waiter claims it: the list of its transaction is guarded by
// another stripe, which must not be latched here.
void PointLock::grant(Waiter& waiter, LockMode mode, Wakes& wakes) {
  unlink(waiter);
  Holder* const self = holders_.find(waiter.txn);
  held_.add(mode);
  if (self == nullptr) {
    waiter.upgrade = false;
    holders_.add({.txn = waiter.txn, .slot = no_slot, .count = 1, .mode = mode});
  } else {
    waiter.upgrade = true;
    waiter.before = self->mode;
    held_.remove(self->mode);
    self->mode = mode;
    // A request at the limit is refused, but several queued ones may exceed it together. Saturate,
    // because the count would overflow.
    self->count =
        self->count == count_max ? count_max : static_cast<std::uint16_t>(self->count + 1);
    waiter.count_then = self->count;
  }
  waiter.complete(WaitState::granted, wakes);
}

bool PointLock::admit_out_of_turn(Waiter& waiter, Wakes& wakes) {
  // Ignores the queue on purpose: only holders can refuse a grant out of turn.
  const Claimed claimed = claim_of(waiter.mode, holders_.find(waiter.txn));
  if ((conflicts_of(claimed.mode) & claimed.against) != 0) {
    return false;
  }
  grant(waiter, claimed.mode, wakes);
  return true;
}

void PointLock::unlink(Waiter& waiter) {
  queue_.erase(queue_.iterator_to(waiter));
  awaited_.remove(waiter.mode);
  if (waiter.upgrade) {
    upgrading_.remove(waiter.mode);
  }
}

// Reads the queue backwards from the waiter, and stops at the nearest exclusive waiter: in a queue
// of n writers each wait then has one edge instead of n.
void PointLock::blockers_of(const Waiter& waiter, std::vector<TxnId>& blockers) const {
  const ModeMask conflicting = conflicts_of(waiter.mode);
  for (auto before = WaitQueue::s_iterator_to(waiter); before != queue_.begin();) {
    --before;
    if ((mask_of(before->mode) & conflicting) == 0) {
      continue;
    }
    if (before->txn != waiter.txn) {
      blockers.push_back(before->txn);
    }
    if (is_exclusive(before->mode)) {
      // An exclusive waiter itself waits for all waiters ahead of it and all holders, so they are
      // reachable through it.
      return;
    }
  }
  for (const Holder& holder : holders_) {
    if (holder.txn != waiter.txn && (mask_of(holder.mode) & conflicting) != 0) {
      blockers.push_back(holder.txn);
    }
  }
}

void PointLock::adopt(const Holder& holder) {
  held_.add(holder.mode);
  holders_.add(holder);
}

}  // namespace tenure::detail
