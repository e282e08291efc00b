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

/// The first three are pending: the waiter stands in its queue. The others are final.
enum WaitState : std::uint32_t {
  waiting,      ///< nobody sleeps on it
  parked,       ///< its thread sleeps
  interrupted,  ///< its thread is to look at its stop token
  granted,      ///< holds the lock
  deadlock,     ///< chosen as victim
  ended,        ///< called off by the transaction
};

/// The threads to wake once no latch is held: declare it before the latches, and it wakes after
/// they are gone.
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

/// Where waiters wait: a table of locks of one shape. All members latch what they look at.
/// REQUIRES everywhere: the stripe of the waiter's transaction is latched.
class WaiterTable {
 public:
  WaiterTable() = default;
  WaiterTable(const WaiterTable&) = delete;
  WaiterTable& operator=(const WaiterTable&) = delete;

  /// Takes a pending waiter out of its queue, settles it as `outcome`, and serves those behind it.
  /// False if it was granted in the meantime.
  virtual bool leave(Waiter& waiter, WaitState outcome, Wakes& wakes) = 0;

  /// Enters a granted waiter's lock into the transaction's list. False if the transaction has let
  /// go of the lock since.
  virtual bool claim(Txn& txn, Waiter& waiter) = 0;

  /// Gives back what a granted waiter was granted, as if it had never asked. True if the
  /// transaction holds the lock no more.
  virtual bool undo(Txn& txn, Waiter& waiter, Wakes& wakes) = 0;

  /// Appends the transactions that `waiter` waits for; none if it is no longer pending. Those who
  /// are reachable through another one may be left out.
  virtual void blockers_of(const Waiter& waiter, std::vector<TxnId>& blockers) = 0;

  /// Grants a pending waiter whom only his place in the queue keeps out. False if a holder does.
  virtual bool admit_out_of_turn(Waiter& waiter, Wakes& wakes) = 0;

  /// For people: `resource 7`.
  [[nodiscard]] virtual std::string describe(const Waiter& waiter) const = 0;

 protected:
  ~WaiterTable() = default;
};

/// One request that stands in a queue. Lives on the stack of the thread that waits, or, for a
/// request() that waits by itself, in its transaction.
struct Waiter {
  Waiter(TxnId txn_id, LockMode requested, WaiterTable& where) noexcept
      : txn(txn_id), wanted(requested), mode(requested), table(&where) {}

  [[nodiscard]] bool is_pending() const noexcept {
    return state.load(std::memory_order_acquire) <= interrupted;
  }

  /// ENSURES: the waiter is not touched any more, since its thread may now return and drop it.
  void complete(WaitState outcome, Wakes& wakes) {
    if (state.exchange(outcome, std::memory_order_acq_rel) == parked) {
      wakes.add(state);
    }
  }

  /// Sleeps until the waiter is settled, the deadline passes or the token is stopped.
  void sleep(const WaitOptions& wait);

  using QueueHook = boost::intrusive::list_member_hook<
      boost::intrusive::link_mode<boost::intrusive::normal_link>>;
  QueueHook queue_hook = {};
  std::atomic<std::uint32_t> state = waiting;

  TxnId txn;
  LockMode wanted;               ///< What was asked for.
  LockMode mode;                 ///< What it will hold: joined with what it held when it asked.
  bool upgrade = false;          ///< Held the lock when it asked; stands before those who did not.
  LockMode before{};             ///< Of a granted upgrade: what was held until then,
  std::uint16_t count_then = 0;  ///< and how often it was held right after the grant.

  WaiterTable* table;
  std::uint64_t resource = 0;                   ///< For points: which,
  PointLock* lock = nullptr;                    ///< and where it queues, while it is pending.
  std::unique_ptr<RangeEntry> entry = nullptr;  ///< For ranges: which.

  std::chrono::steady_clock::time_point since = {};
  std::shared_ptr<const Deadlock> verdict = nullptr;  ///< Why, when settled as deadlock.
};

/// How a waiter looks to people.
[[nodiscard]] WaiterView view_of_waiter(const Waiter& waiter,
                                        std::chrono::steady_clock::time_point now);

using WaitQueue = boost::intrusive::list<
    Waiter, boost::intrusive::member_hook<Waiter, Waiter::QueueHook, &Waiter::queue_hook>>;

}  // namespace tenure::detail
