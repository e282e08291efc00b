#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <tenure/error.hpp>
#include <tenure/ids.hpp>
#include <tenure/lock_manager/snapshot.hpp>
#include <tenure/lock_mode.hpp>

#include "lock_manager/names.hpp"
#include "lock_manager/point_lock.hpp"
#include "lock_manager/point_shard.hpp"
#include "lock_manager/transactions.hpp"
#include "lock_manager/waiter.hpp"
#include "sys/fibonacci.hpp"

namespace tenure::detail {

/// Limits that a table enforces.
struct Limits {
  std::size_t waiters_per_lock_max;
  std::size_t locks_per_transaction_max;
};

/// Sharded hash table of locks on single resources: one table for numbered resources, one for named
/// resources, whose names a NameTable maps to numbers.
///
/// INVARIANT: each entry in the list of a transaction, and each waiter, owns one reference to its
/// name.
///
/// Thread safe. REQUIRES for all members: the stripe of the transaction is latched.
template <PointKind kind>
class PointTable final : public WaiterTable {
 public:
  struct Setup {
    std::size_t shards = 1;  ///< A power of two.
    Limits limits = {};
    NameTable* names = nullptr;  ///< Names of the resources; null for numbered ones.
  };
  explicit PointTable(const Setup& setup);

  /// Acquires the lock for `txn`. If it is blocked and `waiter` is not null, queues the waiter.
  [[nodiscard, gnu::always_inline]] Attempt acquire(Txn& txn, std::uint64_t id, LockMode mode,
                                                    Waiter* waiter) {
    PointShard& shard = shard_of(id);
    const sys::LatchGuard guard(shard.latch);
    const auto slot = static_cast<std::uint32_t>(txn.list(kind).size());
    if (txn.lock_count < limits_.locks_per_transaction_max &&
        shard.try_add_inline(id, {.txn = txn.id, .slot = slot, .count = 1, .mode = mode}))
        [[likely]] {
      enter_into_list(txn, id);
      return Attempt::acquired;
    }
    return acquire_slowly(shard, txn, {.id = id, .mode = mode, .waiter = waiter});
  }

  /// Releases one acquisition; returns false if there is none.
  [[nodiscard]] bool release(Txn& txn, std::uint64_t id, Wakes& wakes) {
    std::uint32_t slot = no_slot;
    {
      PointShard& shard = shard_of(id);
      const sys::LatchGuard guard(shard.latch);
      slot = shard.try_remove_inline(id, txn.id);
    }
    if (slot == no_slot) {
      return release_slowly(txn, id, wakes);
    }
    remove_slot(txn, slot);
    return true;
  }

  [[nodiscard]] Result<void> downgrade(Txn& txn, std::uint64_t id, LockMode mode, Wakes& wakes);

  /// Releases the last locks in the list of `txn` completely, at most `at_most`. Returns their
  /// number.
  std::size_t release_last(Txn& txn, std::size_t at_most, Wakes& wakes) {
    std::vector<std::uint64_t>& list = txn.list(kind);
    const std::size_t count = std::min(list.size(), at_most);
    const auto kept = list.end() - static_cast<std::ptrdiff_t>(count);
    for (auto next = list.end(); next != kept;) {
      const std::uint64_t id = *--next;
      {
        PointShard& shard = shard_of(id);
        const sys::LatchGuard guard(shard.latch);
        if (!shard.try_clear_inline(id, txn.id)) {
          release_wholly(shard, txn, id, wakes);
        }
      }
      forget_name(id);
    }
    list.erase(kept, list.end());
    txn.lock_count -= count;
    return count;
  }

  /// Pending or granted wait of `txn` for this lock; null if there is none.
  [[nodiscard]] Waiter* find_wait(const Txn& txn, std::uint64_t id) const;

  /// Whether a transaction may wait for a lock of `txn`. Conservative: returns true if the check
  /// would be expensive.
  [[nodiscard]] bool may_have_waiters(Txn& txn);

  [[nodiscard]] std::optional<LockMode> mode_held(TxnId txn, std::uint64_t id);
  [[nodiscard]] std::size_t holder_count(std::uint64_t id);
  [[nodiscard]] std::size_t shards() const noexcept { return shards_.size(); }
  void snapshot(std::vector<LockView>& views);

  bool leave(Waiter& waiter, WaitState outcome, Wakes& wakes) override;
  bool claim(Txn& txn, Waiter& waiter) override;
  bool undo(Txn& txn, Waiter& waiter, Wakes& wakes) override;
  void blockers_of(const Waiter& waiter, std::vector<TxnId>& blockers) override;
  bool admit_out_of_turn(Waiter& waiter, Wakes& wakes) override;
  [[nodiscard]] std::string describe(const Waiter& waiter) const override;

 private:
  [[nodiscard]] PointShard& shard_of(std::uint64_t id) noexcept {
    // In two steps: with a single shard the shift would be 64, which is undefined.
    return shards_[(sys::fibonacci_hash(id) >> 1U) >> shift_];
  }
  /// Appends a new hold to the list of its transaction.
  [[gnu::always_inline]] void enter_into_list(Txn& txn, std::uint64_t id) {
    txn.list(kind).push_back(id);
    ++txn.lock_count;
    keep_name(id);
  }
  /// Removes an entry of the list. The last entry moves into its place, so that a release is O(1).
  void remove_slot(Txn& txn, std::uint32_t slot) {
    std::vector<std::uint64_t>& list = txn.list(kind);
    const std::uint64_t gone = list[slot];
    const std::uint64_t moved = list.back();
    list.pop_back();
    --txn.lock_count;
    if (moved != gone) {
      list[slot] = moved;
      move_slot(txn, moved, slot);
    }
    forget_name(gone);
  }
  /// Adds a reference to the name of a named resource.
  void keep_name(std::uint64_t id) {
    if constexpr (kind == PointKind::name) {
      names_->add_reference(id);
    }
  }
  /// Drops a reference to the name of a named resource.
  void forget_name(std::uint64_t id) {
    if constexpr (kind == PointKind::name) {
      names_->drop_reference(id);
    }
  }

  /// Arguments of acquire_slowly().
  struct Request {
    std::uint64_t id;
    LockMode mode;
    Waiter* waiter;
  };
  /// All acquires that the inline fast path cannot serve.
  [[nodiscard]] Attempt acquire_slowly(PointShard& shard, Txn& txn, const Request& request)
      TENURE_REQUIRES(shard.latch);
  void release_wholly(PointShard& shard, const Txn& txn, std::uint64_t id, Wakes& wakes)
      TENURE_REQUIRES(shard.latch);
  [[nodiscard]] bool release_slowly(Txn& txn, std::uint64_t id, Wakes& wakes);
  /// Acquires a fat lock without waiting.
  [[nodiscard]] Attempt acquire_fat(PointLock& lock, Txn& txn, std::uint64_t id, LockMode mode);
  /// Queues a waiter at a fat lock, if the limit of waiters permits.
  [[nodiscard]] Attempt enqueue(PointLock& lock, Txn& txn, Waiter& waiter);
  /// Updates the list index that the lock stores.
  void move_slot(const Txn& txn, std::uint64_t id, std::uint32_t slot);
  [[nodiscard]] std::string text_of(std::uint64_t id) const;

  /// Shards, a power of two in number.
  std::vector<PointShard> shards_;
  unsigned shift_;  ///< Shift that leaves the bits of a shard number.
  Limits limits_;
  /// Names of the resources; null for numbered ones.
  NameTable* names_;
};

extern template class PointTable<PointKind::number>;
extern template class PointTable<PointKind::name>;

}  // namespace tenure::detail
