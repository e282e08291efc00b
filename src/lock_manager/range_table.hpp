#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <absl/container/flat_hash_map.h>

#include <tenure/error.hpp>
#include <tenure/ids.hpp>
#include <tenure/lock_manager/snapshot.hpp>
#include <tenure/lock_manager/target.hpp>
#include <tenure/lock_mode.hpp>

#include "core/interval_tree.hpp"
#include "lock_manager/point_lock.hpp"
#include "lock_manager/point_table.hpp"
#include "lock_manager/range_entry.hpp"
#include "lock_manager/transactions.hpp"
#include "lock_manager/waiter.hpp"
#include "sys/latch.hpp"

namespace tenure::detail {

/// Locks on ranges of keys, by space; `Keys` is KeysOf or BytesOf. Held and awaited ranges of a
/// space are in one interval tree, so one search finds all conflicts. Every acquisition is an entry
/// of its own; entries of one transaction never conflict.
///
/// An entry is blocked by each entry of another transaction that overlaps it, is incompatible, and
/// is held or waits ahead of it (upgrades first, then by arrival).
///
/// Thread safe; the shard of a space guards its tree. REQUIRES for all members: the stripe of the
/// transaction is latched.
template <class Keys>
class RangeTable final : public WaiterTable {
 public:
  RangeTable(std::size_t shards, RangeKind kind, const Limits& limits);

  [[nodiscard]] Attempt acquire(Txn& txn, const Keys& keys, LockMode mode, Waiter* waiter);
  [[nodiscard]] bool release(Txn& txn, const Keys& keys, Wakes& wakes);
  [[nodiscard]] Result<void> downgrade(Txn& txn, const Keys& keys, LockMode mode, Wakes& wakes);
  std::size_t release_last(Txn& txn, std::size_t at_most, Wakes& wakes);
  [[nodiscard]] Waiter* find_wait(const Txn& txn, const Keys& keys) const;
  /// Whether a transaction may wait for a lock of `txn`; conservative.
  [[nodiscard]] bool may_have_waiters(Txn& txn);
  [[nodiscard]] std::optional<LockMode> mode_held(TxnId txn, const Keys& keys);
  [[nodiscard]] std::size_t holder_count(const Keys& keys);
  /// Number of held entries of a space.
  [[nodiscard]] std::size_t range_count(ResourceId space);
  void snapshot(std::vector<LockView>& views);

  bool leave(Waiter& waiter, WaitState outcome, Wakes& wakes) override;
  bool claim(Txn& txn, Waiter& waiter) override;
  bool undo(Txn& txn, Waiter& waiter, Wakes& wakes) override;
  void blockers_of(const Waiter& waiter, std::vector<TxnId>& blockers) override;
  bool admit_out_of_turn(Waiter& waiter, Wakes& wakes) override;
  [[nodiscard]] std::string describe(const Waiter& waiter) const override;

 private:
  using Range = decltype(Keys::range);

  struct Entry final : RangeEntry {
    Entry(TxnId owner, const Keys& keys, LockMode requested)
        : RangeEntry(owner, keys.space, requested), range(keys.range) {}
    Range range;
  };

  /// Held and awaited ranges of one space.
  struct Space {
    IntervalTree<Range, Entry*> tree;
    std::uint64_t next_order = 1;
    std::size_t waiting = 0;  ///< Number of waiting entries in the tree.
  };

  struct alignas(64) Shard {
    sys::Latch latch;
    absl::flat_hash_map<std::uint64_t, std::unique_ptr<Space>> spaces TENURE_GUARDED_BY(latch);

    /// Space with this id; null if it has no entries.
    Space* find(ResourceId space) TENURE_REQUIRES(latch);
    /// The same; creates a missing one.
    Space& find_or_make(ResourceId space) TENURE_REQUIRES(latch);
    /// Drops the space if it is empty and the shard has many.
    void remove_if_unused(ResourceId space) TENURE_REQUIRES(latch);
  };

  /// Conflicts of a new request in a space.
  struct Conflict {
    bool blocked = false;
    bool upgrade = false;     ///< Lies inside a range that its transaction holds.
    std::uint64_t order = 0;  ///< Order of an earlier wait of its transaction that it lies inside;
                              ///< 0: none.
  };

  [[nodiscard]] Shard& shard_of(ResourceId space) noexcept;
  [[nodiscard]] static Entry& entry_of(const Waiter& waiter) noexcept {
    return static_cast<Entry&>(*waiter.entry);
  }
  [[nodiscard]] static Keys keys_of(const Entry& entry) {
    return Keys{.space = entry.space, .range = entry.range};
  }

  /// Conflicts of a new request with the entries of a space.
  static Conflict find_conflict(const Space& space, TxnId txn, const Range& range, LockMode mode);
  /// Queue order of two waiting entries.
  [[nodiscard]] static bool precedes(const Entry& one, const Entry& other) noexcept;
  /// Whether `other` blocks `self`. REQUIRES: their ranges overlap.
  [[nodiscard]] static bool blocks(const Entry& other, const Entry& self) noexcept;
  /// Last acquired entry of `txn` with exactly this range; null if there is none.
  [[nodiscard]] static Entry* find_held(const Space& space, TxnId txn, const Range& range);
  /// Grants waiters that overlap the freed range and are not blocked any more.
  static void grant_waiters(Space& space, const Range& freed, Wakes& wakes);
  /// Removes a held entry from its space and grants waiters that it blocked.
  static void remove_held(Shard& shard, Entry& held, Wakes& wakes) TENURE_REQUIRES(shard.latch);
  /// Makes a waiting entry a held one and completes its waiter.
  static void grant(Space& space, Entry& entry, Wakes& wakes);
  /// Adds the entries of a space to the views, holders and waiters in queue order.
  static void snapshot_space(const Space& space, std::map<std::string, LockView>& views);
  /// Removes an entry from the list of its transaction, and destroys it.
  void drop_from_list(Txn& txn, const Entry& entry);

  std::vector<Shard> shards_;
  RangeKind kind_;
  Limits limits_;
};

extern template class RangeTable<KeysOf>;
extern template class RangeTable<BytesOf>;

}  // namespace tenure::detail
