#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/cow_ptr.hpp"
#include "core/flat_queue.hpp"
#include "core/ids.hpp"
#include "core/item.hpp"
#include "core/range_index.hpp"
#include "core/turn_queue.hpp"

namespace tenure::core {

/// Index of `mode` in an array that has one element per mode.
[[nodiscard]] constexpr std::size_t index_of(LockMode mode) {
  return static_cast<std::size_t>(mode);
}

/// Number of claims on a resource by mode, and sum of its permits. Ranges are not counted; they are
/// compared one by one.
struct Load {
  std::array<std::uint32_t, all_lock_modes.size()> modes{};
  std::uint64_t permits = 0;

  void add(const Claim& claim);
  void remove(const Claim& claim);
  [[nodiscard]] bool admits(LockMode mode) const noexcept;
  /// The load without `part`. REQUIRES: `part` is part of the load.
  [[nodiscard]] Load without(const Load& part) const noexcept;

  friend bool operator==(const Load&, const Load&) = default;
};

/// Claim of one holder on a resource.
struct HeldClaim {
  FencingToken token{};
  const Claim& claim;
};

/// Record of a resource that is held or waited for; a free resource has none. A record without
/// holders has a queue: of requests for several items that wait for another item.
///
///   representation   holders                        queue    memory
///   thin             one, of the whole name         empty    token and mode
///   inflated         any                            any      a FullState on the heap
///
/// A lock is thin until it gets a second holder, a waiter, or a claim that is no whole lock; once
/// inflated it stays so until it is free. A store may have a million held locks, and nearly all of
/// them are uncontended, so this representation decides its memory. Copies are copy-on-write. Not
/// thread safe.
class Lock {
 public:
  struct Counters {
    Revision create_revision{};  ///< Revision of the first grant since the lock was free.
    Revision mod_revision{};     ///< Revision of the last change of the holders.
    std::uint64_t version = 0;   ///< Number of changes since create_revision.

    friend bool operator==(const Counters&, const Counters&) = default;
  };

  /// Capacity of a semaphore; 0 for other resources.
  [[nodiscard]] std::uint32_t capacity() const noexcept { return full_ ? full_->capacity : 0; }
  [[nodiscard]] Counters counters() const noexcept;
  [[nodiscard]] Revision create_revision() const noexcept { return counters().create_revision; }
  [[nodiscard]] Revision mod_revision() const noexcept { return counters().mod_revision; }
  [[nodiscard]] std::uint64_t version() const noexcept { return counters().version; }

  /// Tokens of the holds, ascending.
  [[nodiscard]] std::span<const FencingToken> holds() const noexcept;
  [[nodiscard]] bool has_holder(FencingToken token) const;
  [[nodiscard]] const TurnQueue& queue() const noexcept { return full().queue; }
  [[nodiscard]] Load held() const noexcept;
  [[nodiscard]] const Load& queued() const noexcept { return full().queued; }
  /// Held and awaited ranges of a space; empty for a lock.
  [[nodiscard]] const RangeIndex& ranges() const noexcept { return full().ranges; }
  [[nodiscard]] bool is_free() const noexcept { return holds().empty() && queue().empty(); }

  /// Adds a claim of a new or existing holder; `when` is the revision of the change.
  void add(const HeldClaim& held, Revision when);
  /// Removes one claim. The holder stays, perhaps with other claims.
  void remove(const HeldClaim& held, Revision when);
  /// Removes a holder after its last claim.
  void remove_holder(FencingToken token);
  /// Replaces a claim after an upgrade (new token) or downgrade (same token).
  void replace(const HeldClaim& old, const HeldClaim& next, Revision when);
  /// Adds a claim of a queued wait.
  void join(const Turn& turn, const Claim& claim);
  /// Removes this claim of a queued wait.
  void leave(const Turn& turn, const Claim& claim);
  /// Restores the counters from a snapshot.
  void set_counters(const Counters& counters);

 private:
  struct FullState {
    std::uint32_t capacity = 0;
    Counters counters;
    SortedQueue<FencingToken> holds;
    TurnQueue queue;
    Load held;
    Load queued;
    RangeIndex ranges;
  };

  /// Full state; a static empty one for a thin lock.
  [[nodiscard]] const FullState& full() const noexcept;
  /// Makes the lock inflated; does nothing if it is.
  FullState& inflate();
  /// Counts one change of the holders.
  static void change(FullState& full, Revision when);

  FencingToken sole_holder_{};  ///< Holder of a thin lock; 0: none.
  LockMode mode_{};             ///< Mode of the holder of a thin lock.
  CowPtr<FullState> full_;
};

}  // namespace tenure::core
