#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <tenure/error.hpp>
#include <tenure/ids.hpp>
#include <tenure/lock_mode.hpp>

#include "lock_manager/holders.hpp"
#include "lock_manager/mode_counts.hpp"
#include "lock_manager/waiter.hpp"

namespace tenure::detail {

/// What became of an attempt to take a lock.
enum class Attempt : std::uint8_t {
  acquired,                ///< held now: enter it into the transaction's list
  reacquired,              ///< was in the list before: counted, perhaps upgraded
  acquired_while_waiting,  ///< as taken or again, but the transaction waits elsewhere: look for a
                           ///< cycle
  blocked,                 ///< somebody is in the way; nothing changed
  queued,                  ///< the waiter stands in the queue
  exhausted,               ///< a limit is reached; nothing changed
  victim,                  ///< the transaction is to give way in a deadlock; nothing changed
};

/// The answer to a downgrade that would be none.
[[nodiscard]] std::unexpected<Error> fail_downgrade(LockMode held, LockMode wanted);

/// One lock with holders and a queue: who may go in, who is next. Knows no latch and no thread;
/// whoever calls has latched its shard.
///
/// The queue is in order of arrival, upgrades before the others. INVARIANT: everybody in it
/// conflicts with a holder or with somebody before him.
class alignas(64) PointLock {
 public:
  /// Takes, upgrades or counts, or answers blocked.
  [[nodiscard]] Attempt try_acquire(TxnId txn, LockMode mode, std::uint32_t slot);

  /// Puts the waiter into the queue; right behind `sibling`, if it has one: an earlier wait of the
  /// same transaction, so that nobody stands between the two and waits for one and holds up the
  /// other. REQUIRES: try_take answered blocked for it.
  void enqueue(Waiter& waiter, Waiter* sibling);

  /// Gives back one acquisition by `holder`; with the last one the holder is gone and those who
  /// can go in do so. Returns the slot of a holder that is gone.
  std::optional<std::uint32_t> release_one(Holder& holder, Wakes& wakes);
  void remove_holder(Holder& holder, Wakes& wakes);

  /// REQUIRES: covers(holder.mode, mode).
  void downgrade(Holder& holder, LockMode mode, Wakes& wakes);

  void leave(Waiter& waiter, WaitState outcome, Wakes& wakes);
  [[nodiscard]] bool admit_out_of_turn(Waiter& waiter, Wakes& wakes);
  void blockers_of(const Waiter& waiter, std::vector<TxnId>& blockers) const;

  [[nodiscard]] bool is_unused() const noexcept { return holders_.empty() && queue_.empty(); }
  [[nodiscard]] Holders& holders() noexcept { return holders_; }
  [[nodiscard]] const WaitQueue& queue() const noexcept { return queue_; }

  /// Makes the sole holder of a lock that had no queue the first holder here.
  void adopt(const Holder& holder);

 private:
  struct Claimed {
    LockMode mode;     ///< What would be held.
    ModeMask against;  ///< What the other holders hold.
  };
  [[nodiscard]] Claimed claim_of(LockMode mode, const Holder* self) const noexcept;

  /// Lets in everybody who conflicts with no holder and with nobody who stays before him.
  void grant_waiters(Wakes& wakes);
  /// Behind an exclusive holder or waiter nobody goes in, but the holder himself.
  [[nodiscard]] bool is_closed_to(const Waiter& waiter, ModeMask staying) const noexcept;
  void grant(Waiter& waiter, LockMode mode, Wakes& wakes);
  void unlink(Waiter& waiter);

  // What readers that come and go change is in the first cache line; the rest they only look at.
  Holders holders_;
  ModeCounts held_;
  WaitQueue queue_;
  ModeCounts awaited_;    ///< Of everybody in the queue.
  ModeCounts upgrading_;  ///< Of the upgrades in the queue.
};

}  // namespace tenure::detail
