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

/// Outcome of an attempt to acquire a lock.
enum class Attempt : std::uint8_t {
  acquired,                ///< Newly held: the caller adds it to the list of the transaction.
  reacquired,              ///< Held before: counted, perhaps upgraded.
  acquired_while_waiting,  ///< As the two before, but the transaction waits elsewhere: may close a
                           ///< cycle.
  blocked,                 ///< A holder or waiter conflicts; nothing changed.
  queued,                  ///< The waiter is in the queue.
  exhausted,               ///< A limit is reached; nothing changed.
  victim,                  ///< The transaction is a deadlock victim; nothing changed.
};

/// Error of a downgrade to a mode that the held one does not cover.
[[nodiscard]] std::unexpected<Error> fail_downgrade(LockMode held, LockMode wanted);

/// Lock with holders and a FIFO wait queue, in which upgrades precede other requests.
///
/// INVARIANT: every waiter conflicts with a holder or with a waiter ahead of it. So a request that
/// is compatible with all of them is granted at once, and no request overtakes one that it
/// conflicts with.
///
/// Not thread safe: the caller has latched the shard.
class alignas(64) PointLock {
 public:
  /// Acquires, upgrades or counts the lock; or returns `blocked` and changes nothing.
  [[nodiscard]] Attempt try_acquire(TxnId txn, LockMode mode, std::uint32_t slot);

  /// Queues the waiter, directly behind `sibling` if there is one: an earlier wait of the same
  /// transaction. Otherwise a waiter between the two could wait for the first and block the second.
  /// REQUIRES: try_acquire() returned `blocked`.
  void enqueue(Waiter& waiter, Waiter* sibling);

  /// Releases one acquisition. With the last one, removes the holder, grants waiters, and returns
  /// the slot of the holder.
  std::optional<std::uint32_t> release_one(Holder& holder, Wakes& wakes);
  /// Removes a holder whatever its count, and grants waiters.
  void remove_holder(Holder& holder, Wakes& wakes);

  /// REQUIRES: covers(holder.mode, mode).
  void downgrade(Holder& holder, LockMode mode, Wakes& wakes);

  /// Removes a waiter, completes it with `outcome`, and grants waiters behind it.
  void leave(Waiter& waiter, WaitState outcome, Wakes& wakes);
  /// Grants a waiter ahead of its turn if no holder blocks it; for the Detector.
  [[nodiscard]] bool admit_out_of_turn(Waiter& waiter, Wakes& wakes);
  /// Appends the edges of the wait-for graph from this waiter; implied ones may be left out.
  void blockers_of(const Waiter& waiter, std::vector<TxnId>& blockers) const;

  [[nodiscard]] bool is_unused() const noexcept { return holders_.empty() && queue_.empty(); }
  [[nodiscard]] Holders& holders() noexcept { return holders_; }
  [[nodiscard]] const WaitQueue& queue() const noexcept { return queue_; }

  /// Takes over the holder of a thin lock (PointShard).
  void adopt(const Holder& holder);

 private:
  struct Claimed {
    LockMode mode;     ///< Mode that the transaction would hold.
    ModeMask against;  ///< Modes of the other holders.
  };
  /// Claim of a request, given the hold of its transaction, if any.
  [[nodiscard]] Claimed claim_of(LockMode mode, const Holder* self) const noexcept;

  /// Grants, in queue order, each waiter that conflicts with no holder and no waiter that stays
  /// ahead of it.
  void grant_waiters(Wakes& wakes);
  /// Early exit of grant_waiters(): behind an exclusive holder or waiter no waiter is admissible,
  /// except the holder itself.
  [[nodiscard]] bool is_closed_to(const Waiter& waiter, ModeMask staying) const noexcept;
  /// Makes a waiter a holder, or upgrades its hold.
  void grant(Waiter& waiter, LockMode mode, Wakes& wakes);
  /// Removes a waiter from the queue and its counts.
  void unlink(Waiter& waiter);

  // Uncontended readers write the first cache line only; they read the rest.
  /// Transactions that hold the lock.
  Holders holders_;
  /// Modes of all holders.
  ModeCounts held_;
  /// Waiters in the order of grants.
  WaitQueue queue_;
  ModeCounts awaited_;    ///< Modes of all waiters.
  ModeCounts upgrading_;  ///< Modes of the waiting upgrades.
};

}  // namespace tenure::detail
