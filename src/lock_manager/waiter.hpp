#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <absl/container/inlined_vector.h>
#include <boost/intrusive/list.hpp>

#include <tenure/ids.hpp>
#include <tenure/lock_manager/deadlock.hpp>
#include <tenure/lock_manager/options.hpp>
#include <tenure/lock_manager/snapshot.hpp>
#include <tenure/lock_mode.hpp>

#include "lock_manager/range_entry.hpp"

namespace tenure::detail {

class PointLock;
struct Txn;
struct Waiter;

/// States of a waiter. Pending waiters are in their queue; the other states are final.
///
///   state        pending   set by                        meaning
///   waiting      yes       the waiter                    no thread is parked on it
///   parked       yes       the waiter                    its thread is parked
///   interrupted  yes       a stop request                its thread has to check its stop token
///   granted      no        release, downgrade, ...       it holds the lock
///   deadlock     no        Detector                      its transaction is a victim
///   ended        no        cancel, timeout, release_all  the wait was cancelled
enum WaitState : std::uint32_t {
  waiting,      ///< Pending; no thread is parked on it.
  parked,       ///< Pending; its thread is parked.
  interrupted,  ///< Pending; its thread has to check its stop token.
  granted,      ///< The waiter holds the lock.
  deadlock,     ///< The transaction was chosen as victim.
  ended,        ///< The wait was cancelled.
};

/// Deferred wake-ups: collects parked threads and wakes them in its destructor. Declare it before
/// the latch guards, so that a woken thread does not block on a latch of its waker.
class Wakes {
 public:
  Wakes() = default;
  Wakes(const Wakes&) = delete;
  Wakes& operator=(const Wakes&) = delete;
  ~Wakes() {
    if (!words_.empty()) [[unlikely]] {
      wake_all();
    }
  }

  void add(const std::atomic<std::uint32_t>& word) { words_.push_back(&word); }

 private:
  void wake_all() noexcept;

  absl::InlinedVector<const std::atomic<std::uint32_t>*, 4> words_;
};

/// Interface of the tables in which waiters queue, one per kind of target. All members latch the
/// shards that they access. REQUIRES for all: the stripe of the transaction of the waiter is
/// latched.
class WaiterTable {
 public:
  WaiterTable() = default;
  WaiterTable(const WaiterTable&) = delete;
  WaiterTable& operator=(const WaiterTable&) = delete;

  /// Removes a pending waiter from its queue, completes it with `outcome`, and grants waiters
  /// behind it. Returns false if it was granted before.
  virtual bool leave(Waiter& waiter, WaitState outcome, Wakes& wakes) = 0;

  /// Adds the lock of a granted waiter to the list of the transaction. Returns false if the
  /// transaction has released the lock since.
  virtual bool claim(Txn& txn, Waiter& waiter) = 0;

  /// Reverts the grant of a waiter. Returns true if the transaction does not hold the lock any
  /// more.
  virtual bool undo(Txn& txn, Waiter& waiter, Wakes& wakes) = 0;

  /// Appends the transactions that `waiter` waits for; none if it is not pending. Transactions that
  /// are reachable through another one may be left out.
  virtual void blockers_of(const Waiter& waiter, std::vector<TxnId>& blockers) = 0;

  /// Grants a pending waiter that is blocked by its queue position only. Returns false if a holder
  /// blocks it.
  virtual bool admit_out_of_turn(Waiter& waiter, Wakes& wakes) = 0;

  /// Human-readable target: `resource 7`.
  [[nodiscard]] virtual std::string describe(const Waiter& waiter) const = 0;

 protected:
  ~WaiterTable() = default;
};

/// A queued request. It is on the stack of the waiting thread or, for request(), in its
/// transaction. The latch of the shard guards the members that describe the queue; `state` is
/// atomic.
struct Waiter {
  Waiter(TxnId txn_id, LockMode requested, WaiterTable& where) noexcept
      : txn(txn_id), wanted(requested), mode(requested), table(&where) {}

  [[nodiscard]] bool is_pending() const noexcept {
    return state.load(std::memory_order_acquire) <= interrupted;
  }

  /// Sets the final state and wakes the thread. ENSURES: the waiter is not accessed afterwards,
  /// because its thread may return and destroy it.
  void complete(WaitState outcome, Wakes& wakes) {
    if (state.exchange(outcome, std::memory_order_acq_rel) == parked) {
      wakes.add(state);
    }
  }

  /// Blocks until the waiter is completed, the deadline passes or the token is stopped.
  void sleep(const WaitOptions& wait);

  using QueueHook = boost::intrusive::list_member_hook<
      boost::intrusive::link_mode<boost::intrusive::normal_link>>;
  /// Link of the queue of a point lock.
  QueueHook queue_hook = {};
  std::atomic<std::uint32_t> state = waiting;

  TxnId txn;
  LockMode wanted;       ///< Requested mode.
  LockMode mode;         ///< Mode after the grant: the join of `wanted` and the mode held before.
  bool upgrade = false;  ///< The transaction holds the lock: precedes non-holders.
  LockMode before{};     ///< Mode held before a granted upgrade.
  std::uint16_t count_then = 0;  ///< Hold count right after the grant.

  /// Table in which it waits.
  WaiterTable* table;
  std::uint64_t resource = 0;                   ///< Point lock: its resource.
  PointLock* lock = nullptr;                    ///< Point lock: its lock, while pending.
  std::unique_ptr<RangeEntry> entry = nullptr;  ///< Range lock: its entry.

  std::chrono::steady_clock::time_point since = {};
  std::shared_ptr<const Deadlock> verdict =
      nullptr;  ///< Deadlock, if its transaction is the victim.
};

/// View of a waiter for snapshots.
[[nodiscard]] WaiterView view_of_waiter(const Waiter& waiter,
                                        std::chrono::steady_clock::time_point now);

using WaitQueue = boost::intrusive::list<
    Waiter, boost::intrusive::member_hook<Waiter, Waiter::QueueHook, &Waiter::queue_hook>>;

}  // namespace tenure::detail
