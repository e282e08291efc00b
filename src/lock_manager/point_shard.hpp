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

/// One part of a point table. A lock without a queue and with one holder, the usual case, is
/// *thin*: just its holder, the first two of a shard in the cache line of the latch. A second
/// holder finds a place there too if there is room; otherwise, or with a waiter, the lock becomes
/// a PointLock (*fat*) until nobody is left. A free lock takes no memory, but for the last fat one
/// of a shard.
class alignas(64) PointShard {
 public:
  sys::Latch latch;

  /// A thin lock as a transaction sees it; both empty if the lock is free or fat.
  struct ThinLock {
    Holder* mine = nullptr;
    ModeMask others = 0;  ///< What others hold.
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

  /// Makes a free lock thin if that can be done within this cache line; the usual case.
  [[nodiscard]] bool try_add_inline(std::uint64_t id, const Holder& holder) TENURE_REQUIRES(latch) {
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

  /// Frees a thin lock of this cache line that `txn` acquired once, and returns its slot; no_slot
  /// if it is not such a one.
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

  /// Frees a thin lock of this cache line that `txn` holds; false if it is not such a one.
  [[nodiscard]] bool try_clear_inline(std::uint64_t id, TxnId txn) TENURE_REQUIRES(latch) {
    for (InlineLock& entry : inline_) {
      if (entry.id == id && entry.holder.count != 0 && entry.holder.txn == txn) {
        entry.holder.count = 0;
        return true;
      }
    }
    return false;
  }

  /// Nothing if the lock is thin, or free and not the last one that was fat.
  [[nodiscard]] PointLock* find_fat(std::uint64_t id) TENURE_REQUIRES(latch) {
    return overflow_ == nullptr ? nullptr : overflow_->find_fat(id);
  }

  /// Forgets a fat lock that nobody uses, unless it is this one. To be called before a lock is
  /// taken, so that one contended lock does not keep the others out of the cache line for long.
  void forget_unused_except(std::uint64_t id) TENURE_REQUIRES(latch) {
    if (overflow_ != nullptr && overflow_->last != nullptr && overflow_->last_id != id) {
      overflow_->forget_last_if_unused();
    }
  }

  /// Whether a thin lock may get a second holder.
  [[nodiscard]] bool has_room() const TENURE_REQUIRES(latch) {
    return inline_[0].holder.count == 0 || inline_[1].holder.count == 0;
  }

  /// REQUIRES: the lock is free, or thin and has_room().
  void add_thin(std::uint64_t id, const Holder& holder) TENURE_REQUIRES(latch) {
    for (InlineLock& entry : inline_) {
      if (entry.holder.count == 0) {
        entry = {.id = id, .holder = holder};
        return;
      }
    }
    overflow().thin.emplace(id, holder);
  }

  /// REQUIRES: `holder` is that of a thin lock.
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

  /// REQUIRES: the lock is thin.
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

  /// To be called when a fat lock may have become unused.
  void remove_fat_if_unused(std::uint64_t id, PointLock& lock) TENURE_REQUIRES(latch) {
    if (lock.is_unused()) {
      overflow_->make_last(id, lock);
    }
  }

  /// Calls on_thin(id, holder) for every holder of a thin lock and on_fat(id, lock) for every fat
  /// lock.
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
  /// INVARIANT: free iff the count is zero.
  struct InlineLock {
    std::uint64_t id = 0;
    Holder holder = {.txn = {}, .slot = 0, .count = 0, .mode = {}};
  };

  struct Overflow {
    /// The fat lock that was looked for last. INVARIANT: every other one is used; this one may
    /// linger when it is not, since a lock that many want is soon wanted again.
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
        return;  // without a write, so that the threads that want it share the cache line
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

    /// Gives back the memory of a table that was large once.
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
