#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <absl/container/flat_hash_map.h>

#include <tenure/ids.hpp>
#include <tenure/lock_mode.hpp>

#include "lock_manager/holders.hpp"
#include "lock_manager/mode_counts.hpp"
#include "lock_manager/point_lock.hpp"
#include "sys/latch.hpp"

namespace tenure::detail {

/// Shard of a point table, one cache line: a latch and two inline thin locks.
///
///   representation   holders          waiters   where
///   free             0                no        nowhere
///   thin             1 to 3           no        inline_; one may be in overflow_->thin
///   fat              any              any       overflow_->fat (a PointLock)
///
/// An uncontended acquire and release touch this cache line only. A thin lock is inflated when it
/// gets a waiter, or a second holder without room in inline_; a fat lock becomes thin again
/// only after it was free. The last fat lock stays after it became unused, because a contended lock
/// is soon used again.
///
/// The latch guards all members.
class alignas(64) PointShard {
 public:
  sys::Latch latch;

  /// Thin lock from the view of a transaction; both empty if the lock is free or fat.
  struct ThinLock {
    Holder* mine = nullptr;
    ModeMask others = 0;  ///< Modes of the other holders.
  };
  [[nodiscard]] ThinLock find_thin(std::uint64_t id, TxnId txn) TENURE_REQUIRES(latch) {
    ThinLock seen;
    const auto note = [&](Holder& holder) {
      if (holder.txn == txn) {
        seen.mine = &holder;
      } else {
        seen.others |= mask_of(holder.mode);
      }
    };
    for (InlineLock& entry : inline_) {
      if (entry.id == id && entry.holder.count != 0) {
        note(entry.holder);
      }
    }
    if (overflow_ != nullptr && !overflow_->thin.empty()) {
      if (const auto found = overflow_->thin.find(id); found != overflow_->thin.end()) {
        note(found->second);
      }
    }
    return seen;
  }

  [[nodiscard]] std::size_t count_thin(std::uint64_t id) TENURE_REQUIRES(latch) {
    std::size_t count = overflow_ != nullptr && overflow_->thin.contains(id) ? 1 : 0;
    for (const InlineLock& entry : inline_) {
      count += entry.id == id && entry.holder.count != 0 ? 1 : 0;
    }
    return count;
  }

  /// Fast path of an acquire: makes a free lock thin in this cache line. Returns false if it is not
  /// free or there is no room.
  [[nodiscard]] bool try_add_inline(std::uint64_t id, const Holder& holder) TENURE_REQUIRES(latch) {
    // The lock could be in the overflow; only the slow path looks there.
    if (overflow_ != nullptr && !overflow_->is_empty()) {
      return false;
    }
    InlineLock* free = nullptr;
    for (InlineLock& entry : inline_) {
      if (entry.holder.count == 0) {
        free = &entry;
      } else if (entry.id == id) {
        return false;
      }
    }
    if (free == nullptr) {
      return false;
    }
    *free = {.id = id, .holder = holder};
    return true;
  }

  /// Fast path of a release: frees an inline thin lock that `txn` has acquired once, and returns
  /// its slot. Returns no_slot if the lock is anything else.
  [[nodiscard]] std::uint32_t try_remove_inline(std::uint64_t id, TxnId txn)
      TENURE_REQUIRES(latch) {
    for (InlineLock& entry : inline_) {
      if (entry.id == id && entry.holder.count == 1 && entry.holder.txn == txn) {
        entry.holder.count = 0;
        return entry.holder.slot;
      }
    }
    return no_slot;
  }

  /// Fast path of release_all(): frees an inline thin lock that `txn` holds, however often. Returns
  /// false if the lock is anything else.
  [[nodiscard]] bool try_clear_inline(std::uint64_t id, TxnId txn) TENURE_REQUIRES(latch) {
    for (InlineLock& entry : inline_) {
      if (entry.id == id && entry.holder.count != 0 && entry.holder.txn == txn) {
        entry.holder.count = 0;
        return true;
      }
    }
    return false;
  }

  /// Null if the lock is thin, or free and not the last fat one.
  [[nodiscard]] PointLock* find_fat(std::uint64_t id) TENURE_REQUIRES(latch) {
    return overflow_ == nullptr ? nullptr : overflow_->find_fat(id);
  }

  /// Destroys the last fat lock if it is unused and another one than `id`. Called before an
  /// acquire: while a fat lock exists, other locks cannot use the inline fast path.
  void forget_unused_except(std::uint64_t id) TENURE_REQUIRES(latch) {
    if (overflow_ != nullptr && overflow_->last != nullptr && overflow_->last_id != id) {
      overflow_->forget_last_if_unused();
    }
  }

  /// Whether inline_ has room, so that a thin lock may get a second holder.
  [[nodiscard]] bool has_room() const TENURE_REQUIRES(latch) {
    return inline_[0].holder.count == 0 || inline_[1].holder.count == 0;
  }

  /// Adds a holder of a thin lock. REQUIRES: the lock is free, or thin and has_room().
  void add_thin(std::uint64_t id, const Holder& holder) TENURE_REQUIRES(latch) {
    for (InlineLock& entry : inline_) {
      if (entry.holder.count == 0) {
        entry = {.id = id, .holder = holder};
        return;
      }
    }
    overflow().thin.emplace(id, holder);
  }

  /// Removes a holder of a thin lock. REQUIRES: `holder` is in this shard.
  void remove_thin(std::uint64_t id, Holder& holder) TENURE_REQUIRES(latch) {
    for (InlineLock& entry : inline_) {
      if (&entry.holder == &holder) {
        holder.count = 0;
        return;
      }
    }
    overflow_->thin.erase(id);
    overflow_->shrink();
  }

  /// Makes a thin lock fat and moves its holders. REQUIRES: the lock is thin.
  PointLock& inflate(std::uint64_t id) TENURE_REQUIRES(latch) {
    PointLock& lock = overflow().add_fat(id);
    for (InlineLock& entry : inline_) {
      if (entry.id == id && entry.holder.count != 0) {
        lock.adopt(entry.holder);
        entry.holder.count = 0;
      }
    }
    if (const auto found = overflow_->thin.find(id); found != overflow_->thin.end()) {
      lock.adopt(found->second);
      overflow_->thin.erase(found);
    }
    return lock;
  }

  /// Destroys a fat lock that became unused, later: it stays as the last one until then.
  void remove_fat_if_unused(std::uint64_t id, PointLock& lock) TENURE_REQUIRES(latch) {
    if (lock.is_unused()) {
      overflow_->make_last(id, lock);
    }
  }

  /// Calls on_thin(id, holder) for every holder of a thin lock, and on_fat(id, lock) for every used
  /// fat lock.
  template <class OnThin, class OnFat>
  void visit(OnThin&& on_thin, OnFat&& on_fat) TENURE_REQUIRES(latch) {
    for (const InlineLock& entry : inline_) {
      if (entry.holder.count != 0) {
        on_thin(entry.id, entry.holder);
      }
    }
    if (overflow_ == nullptr) {
      return;
    }
    for (const auto& [id, holder] : overflow_->thin) {
      on_thin(id, holder);
    }
    for (auto& [id, lock] : overflow_->fat) {
      if (!lock->is_unused()) {
        on_fat(id, *lock);
      }
    }
  }

 private:
  /// Inline thin lock. INVARIANT: it is free iff the count is zero.
  struct InlineLock {
    std::uint64_t id = 0;
    Holder holder = {.txn = {}, .slot = 0, .count = 0, .mode = {}};
  };

  struct Overflow {
    /// Fat lock that was used last. INVARIANT: every other fat lock is in use; this one may be
    /// unused, because a contended lock is soon used again.
    std::uint64_t last_id = 0;
    PointLock* last = nullptr;
    absl::flat_hash_map<std::uint64_t, Holder> thin = {};
    absl::flat_hash_map<std::uint64_t, std::unique_ptr<PointLock>> fat = {};

    [[nodiscard]] bool is_empty() const noexcept { return thin.empty() && fat.empty(); }

    [[nodiscard]] PointLock* find_fat(std::uint64_t id) {
      if (last != nullptr && last_id == id) {
        return last;
      }
      const auto found = fat.find(id);
      if (found == fat.end()) {
        return nullptr;
      }
      make_last(id, *found->second);
      return last;
    }

    PointLock& add_fat(std::uint64_t id) {
      PointLock& lock = *fat.emplace(id, std::make_unique<PointLock>()).first->second;
      make_last(id, lock);
      return lock;
    }

    void make_last(std::uint64_t id, PointLock& lock) {
      if (last == &lock) {
        return;  // no write, so that contending threads keep sharing the cache line
      }
      if (last != nullptr) {
        forget_last_if_unused();
      }
      last_id = id;
      last = &lock;
    }

    void forget_last_if_unused() {
      if (last->is_unused()) {
        fat.erase(last_id);
        shrink();
      }
      last = nullptr;
    }

    /// Frees the memory of an empty table that was large once.
    void shrink() {
      constexpr std::size_t keep_max = 64;
      if (thin.empty() && thin.capacity() > keep_max) {
        thin = {};
      }
      if (fat.empty() && fat.capacity() > keep_max) {
        fat = {};
      }
    }
  };

  [[nodiscard]] Overflow& overflow() TENURE_REQUIRES(latch) {
    if (overflow_ == nullptr) {
      overflow_ = std::make_unique<Overflow>();
    }
    return *overflow_;
  }

  std::unique_ptr<Overflow> overflow_ TENURE_GUARDED_BY(latch);
  std::array<InlineLock, 2> inline_ TENURE_GUARDED_BY(latch);
};

static_assert(sizeof(PointShard) == 64, "one cache line");

}  // namespace tenure::detail
