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

/// The kinds of things a transaction keeps a list of.
enum class PointKind : std::uint8_t { number, name };
enum class RangeKind : std::uint8_t { keys, bytes };

/// One transaction: what it holds, what it waits for, whether it is to give way. Guarded by the
/// latch of its stripe, all of it.
struct Txn {
  Txn(TxnId number, sys::Latch& stripe) noexcept : latch(&stripe) { begin(number); }

  /// Makes an idle record that of another transaction.
  void begin(TxnId number) noexcept;

  /// Nothing is lost when the record is dropped.
  [[nodiscard]] bool is_idle() const noexcept {
    return pins == 0 && verdict == nullptr && waits.empty() && lock_count == 0;
  }

  [[nodiscard]] std::vector<std::uint64_t>& list(PointKind kind) noexcept {
    return points[static_cast<std::size_t>(kind)];
  }
  [[nodiscard]] std::vector<std::unique_ptr<RangeEntry>>& list(RangeKind kind) noexcept {
    return ranges[static_cast<std::size_t>(kind)];
  }

  /// Forgets a wait; the thread that waits keeps the waiter.
  void drop_wait(const Waiter& waiter);
  /// Forgets a wait and frees the waiter, if it is that of a request().
  /// ENSURES: a thread's own waiter is still in `waits`.
  void drop_request(const Waiter& waiter);
  /// The same waiter if it is that of a request(), else nothing.
  [[nodiscard]] Waiter* find_request(Waiter* waiter) const;

  TxnId id;
  sys::Latch* latch;           ///< That of its stripe; never changes.
  std::size_t lock_count = 0;  ///< INVARIANT: how many are in all the lists below.
  std::uint64_t age = 0;
  std::uint64_t work = 0;
  int priority = 0;
  std::uint32_t pins = 0;  ///< Handles that point here.
  bool ending = false;     ///< release_all() is at work; others of this transaction wait for it.
  bool notified = false;   ///< Of a victim: some call has answered deadlock.
  std::chrono::steady_clock::time_point since = {};

  /// The locks held. Each lock knows its index here, so that letting go of one costs the same
  /// however many there are. A lock granted to a waiter is entered when the waiter claims it;
  /// until then it is found through `waits`.
  std::array<std::vector<std::uint64_t>, 2> points = {};
  std::array<std::vector<std::unique_ptr<RangeEntry>>, 2> ranges = {};

  /// The waits that were not yet claimed, called off or given up by their thread.
  absl::InlinedVector<Waiter*, 1> waits = {};
  /// Those of them that request() made, which have no thread.
  std::vector<std::unique_ptr<Waiter>> requests = {};

  /// For the Detector: the last search that came by, and from whom.
  std::uint64_t search = 0;
  TxnId reached_from = {};

  /// The deadlock in which this transaction is to give way.
  std::shared_ptr<const Deadlock> verdict = nullptr;
};

/// All transactions, in stripes with a latch each. Every operation of a transaction enters it
/// first and latches a lock's shard inside, never the other way round and never two stripes; so
/// who has latched all stripes (Freeze) has stopped the whole table.
class Transactions {
 public:
  Transactions();

  /// A transaction that is entered: its stripe is latched until the end of the scope.
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

  /// Enters a transaction that is made if it does not exist.
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
  /// Leaves an entered transaction for a moment, so that others of its stripe get in.
  static void pause(const Txn& entered) { yield_latch(*entered.latch); }
  /// Enters a transaction that somebody has pinned.
  [[nodiscard]] Entered enter(Txn& pinned) TENURE_NO_THREAD_SAFETY_ANALYSIS {
    pinned.latch->lock();
    while (pinned.ending) [[unlikely]] {
      yield_latch(*pinned.latch);
    }
    return {*pinned.latch, &pinned};
  }
  /// HolderQueries into a transaction if it exists: as enter_existing(), but does not wait for its
  /// end and does not make it the warm one.
  [[nodiscard]] Entered enter_for_search(TxnId id);

  /// All transactions stopped, for as long as it lives.
  class Freeze {
   public:
    explicit Freeze(Transactions& all);
    Freeze(const Freeze&) = delete;
    Freeze& operator=(const Freeze&) = delete;
    ~Freeze();

   private:
    Transactions& all_;
  };

  /// REQUIRES: a Freeze, or the stripe of `id` entered.
  [[nodiscard]] Txn* find(TxnId id);

  /// Calls visit(txn) for each one, a stripe at a time.
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
    /// The one that was entered last. INVARIANT: no other one is idle, so that a transaction
    /// which takes and releases single locks keeps its record and no more than one is idle.
    Txn* warm TENURE_GUARDED_BY(latch) = nullptr;
    /// The warm one if it was never displaced; all others are known. So transactions that come
    /// and go one after the other use this one record and never touch the map.
    std::unique_ptr<Txn> fresh TENURE_GUARDED_BY(latch);
    absl::flat_hash_map<std::uint64_t, std::unique_ptr<Txn>> known TENURE_GUARDED_BY(latch);

    /// Finds a transaction, whatever it is doing.
    [[nodiscard]] Txn* find(std::uint64_t id) TENURE_REQUIRES(latch);
    /// Finds a transaction and makes it the warm one.
    Txn* look_up(std::uint64_t id) TENURE_REQUIRES(latch);
    Txn& make(std::uint64_t id) TENURE_REQUIRES(latch);
    /// Puts away the warm one: what is idle is forgotten, but for a fresh one, which may be used
    /// again.
    void displace_warm() TENURE_REQUIRES(latch);
  };

  static constexpr std::size_t stripe_count = 256;

  [[nodiscard]] Stripe& stripe_of(TxnId id) noexcept {
    static_assert(stripe_count == 256);
    return stripes_[sys::fibonacci_hash(id.get()) >> 56U];
  }
  [[nodiscard]] static Txn* find_or_make(Stripe& stripe, TxnId id);
  [[nodiscard]] static Txn* find_not_ending(Stripe& stripe, TxnId id);
  static void yield_latch(sys::Latch& latch);

  std::vector<Stripe> stripes_;
};

}  // namespace tenure::detail
