#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <absl/container/flat_hash_map.h>
#include <absl/container/inlined_vector.h>

#include <tenure/ids.hpp>
#include <tenure/lock_manager/deadlock.hpp>

#include "lock_manager/range_entry.hpp"
#include "lock_manager/waiter.hpp"
#include "sys/fibonacci.hpp"
#include "sys/latch.hpp"

namespace tenure::detail {

/// Kinds of locks that a transaction keeps a list of.
enum class PointKind : std::uint8_t { number, name };
enum class RangeKind : std::uint8_t { keys, bytes };

/// Record of a transaction: its holds, its waits, and whether it is a deadlock victim. The latch of
/// its stripe guards all members.
struct Txn {
  Txn(TxnId number, sys::Latch& stripe) noexcept : latch(&stripe) { begin(number); }

  /// Reuses an idle record for another transaction.
  void begin(TxnId number) noexcept;

  /// Whether the record can be dropped or reused.
  [[nodiscard]] bool is_idle() const noexcept {
    return pins == 0 && verdict == nullptr && waits.empty() && lock_count == 0;
  }

  [[nodiscard]] std::vector<std::uint64_t>& list(PointKind kind) noexcept {
    return points[static_cast<std::size_t>(kind)];
  }
  [[nodiscard]] std::vector<std::unique_ptr<RangeEntry>>& list(RangeKind kind) noexcept {
    return ranges[static_cast<std::size_t>(kind)];
  }

  /// Removes a wait from the list. The waiting thread still owns the waiter.
  void drop_wait(const Waiter& waiter);
  /// Removes a wait and destroys the waiter, if request() created it. ENSURES: the waiter of a
  /// thread stays in `waits`.
  void drop_request(const Waiter& waiter);
  /// Returns `waiter` if request() created it, else null.
  [[nodiscard]] Waiter* find_request(Waiter* waiter) const;

  TxnId id;
  sys::Latch* latch;           ///< Latch of its stripe; never changes.
  std::size_t lock_count = 0;  ///< INVARIANT: number of entries in the lists below.
  std::uint64_t age = 0;       ///< Start order for victim policies; the id by default.
  std::uint64_t work = 0;      ///< Number of granted acquisitions, for VictimPolicy::least_work.
  int priority = 0;
  std::uint32_t pins = 0;  ///< Number of handles that refer to the record.
  bool ending = false;     ///< release_all() is in progress; other calls of the transaction wait.
  bool notified = false;   ///< A call of the victim has returned the deadlock error.
  std::chrono::steady_clock::time_point since = {};

  /// Held locks. Each lock stores its index here, so a release is O(1). A lock that was granted to
  /// a waiter is added when the waiter claims it; until then `waits` leads to it.
  std::array<std::vector<std::uint64_t>, 2> points = {};
  std::array<std::vector<std::unique_ptr<RangeEntry>>, 2> ranges = {};

  /// Waits that were not claimed, cancelled or abandoned yet.
  absl::InlinedVector<Waiter*, 1> waits = {};
  /// Waiters among them that request() created; they have no thread.
  std::vector<std::unique_ptr<Waiter>> requests = {};

  /// Marks of the Detector: last search that reached the transaction, and its predecessor in it.
  std::uint64_t search = 0;
  TxnId reached_from = {};

  /// Deadlock whose victim this transaction is; null if it is none.
  std::shared_ptr<const Deadlock> verdict = nullptr;
};

/// Striped table of transactions, with a latch per stripe.
///
/// Every operation enters its transaction (latches the stripe) before it latches a shard of locks;
/// never the other way round, and never two stripes. So a thread that has latched all stripes
/// (Freeze) has stopped all operations.
///
/// Thread safe.
class Transactions {
 public:
  Transactions();

  /// Guard of an entered transaction: its stripe is latched until the end of the scope. Empty
  /// (false) if the transaction does not exist.
  class Entered {
   public:
    Entered(sys::Latch& latch, Txn* txn) noexcept : latch_(&latch), txn_(txn) {}
    Entered(const Entered&) = delete;
    Entered& operator=(const Entered&) = delete;
    ~Entered() TENURE_NO_THREAD_SAFETY_ANALYSIS { latch_->unlock(); }

    explicit operator bool() const noexcept { return txn_ != nullptr; }
    [[nodiscard]] Txn& operator*() const noexcept { return *txn_; }
    [[nodiscard]] Txn* operator->() const noexcept { return txn_; }

   private:
    sys::Latch* latch_;
    Txn* txn_;
  };

  /// Enters a transaction; creates it if it does not exist.
  [[nodiscard]] Entered enter(TxnId id) TENURE_NO_THREAD_SAFETY_ANALYSIS {
    Stripe& stripe = stripe_of(id);
    stripe.latch.lock();
    Txn* const warm = stripe.warm;
    const bool is_it = warm != nullptr && warm->id == id && !warm->ending;
    return {stripe.latch, is_it ? warm : find_or_make(stripe, id)};
  }
  /// Enters a transaction if it exists.
  [[nodiscard]] Entered enter_existing(TxnId id) TENURE_NO_THREAD_SAFETY_ANALYSIS {
    Stripe& stripe = stripe_of(id);
    stripe.latch.lock();
    Txn* const warm = stripe.warm;
    const bool is_it = warm != nullptr && warm->id == id && !warm->ending;
    return {stripe.latch, is_it ? warm : find_not_ending(stripe, id)};
  }
  /// Yields the latch of an entered transaction to other threads for a moment.
  static void pause(const Txn& entered) { yield_latch(*entered.latch); }
  /// Enters a pinned transaction, without a lookup.
  [[nodiscard]] Entered enter(Txn& pinned) TENURE_NO_THREAD_SAFETY_ANALYSIS {
    pinned.latch->lock();
    while (pinned.ending) [[unlikely]] {
      yield_latch(*pinned.latch);
    }
    return {*pinned.latch, &pinned};
  }
  /// Enters a transaction for a search, if it exists: as enter_existing(), but does not wait for
  /// its end and does not make it the warm one.
  [[nodiscard]] Entered enter_for_search(TxnId id);

  /// Stop-the-world guard: latches all stripes for its lifetime.
  class Freeze {
   public:
    explicit Freeze(Transactions& all);
    Freeze(const Freeze&) = delete;
    Freeze& operator=(const Freeze&) = delete;
    ~Freeze();

   private:
    Transactions& all_;
  };

  /// Finds a transaction; null if it does not exist. REQUIRES: a Freeze, or an entered transaction
  /// of the same stripe.
  [[nodiscard]] Txn* find(TxnId id);

  /// Calls visit(txn) for each transaction, one stripe at a time: no consistent snapshot.
  template <class Visit>
  void visit(Visit&& visit) {
    for (Stripe& stripe : stripes_) {
      const sys::LatchGuard guard(stripe.latch);
      if (stripe.fresh != nullptr) {
        visit(*stripe.fresh);
      }
      for (auto& [id, txn] : stripe.known) {
        visit(*txn);
      }
    }
  }

 private:
  struct alignas(64) Stripe {
    sys::Latch latch;
    /// Record that was entered last. INVARIANT: no other record is idle. So a transaction that
    /// acquires and releases single locks keeps its record, and at most one idle record exists.
    Txn* warm TENURE_GUARDED_BY(latch) = nullptr;
    /// The warm record if it was never displaced; all other records are in `known`. So transactions
    /// that follow one another reuse one record and never touch the map.
    std::unique_ptr<Txn> fresh TENURE_GUARDED_BY(latch);
    absl::flat_hash_map<std::uint64_t, std::unique_ptr<Txn>> known TENURE_GUARDED_BY(latch);

    /// Finds a transaction, even if it is ending.
    [[nodiscard]] Txn* find(std::uint64_t id) TENURE_REQUIRES(latch);
    /// Finds a transaction and makes it the warm one.
    Txn* look_up(std::uint64_t id) TENURE_REQUIRES(latch);
    /// Creates a transaction, in the fresh record if there is one, and makes it the warm one.
    Txn& make(std::uint64_t id) TENURE_REQUIRES(latch);
    /// Makes room for another warm record. An idle one is destroyed, except a fresh one, which is
    /// reused.
    void displace_warm() TENURE_REQUIRES(latch);
  };

  /// 256 stripes: two running threads rarely need the same one, and Freeze latches few.
  static constexpr std::size_t stripe_count = 256;

  [[nodiscard]] Stripe& stripe_of(TxnId id) noexcept {
    static_assert(stripe_count == 256);
    return stripes_[sys::fibonacci_hash(id.get()) >> 56U];
  }
  /// As find_not_ending(), but creates a missing transaction.
  [[nodiscard]] static Txn* find_or_make(Stripe& stripe, TxnId id);
  [[nodiscard]] static Txn* find_not_ending(Stripe& stripe, TxnId id);
  /// Releases a latch for a moment, so that other threads can acquire it.
  static void yield_latch(sys::Latch& latch);

  std::vector<Stripe> stripes_;
};

}  // namespace tenure::detail
