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

/// How much of a place is taken: by mode, and in permits. Ranges are compared one by one.
struct Load {
  std::array<std::uint32_t, all_lock_modes.size()> modes{};
  std::uint64_t permits = 0;

  void add(const Claim& claim);
  void remove(const Claim& claim);
  [[nodiscard]] bool admits(LockMode mode) const noexcept;
  /// REQUIRES: `part` is part of it.
  [[nodiscard]] Load without(const Load& part) const noexcept;

  friend bool operator==(const Load&, const Load&) = default;
};

/// What one holder has at a place.
struct HeldClaim {
  FencingToken token{};
  const Claim& claim;
};

/// A place that somebody holds or waits for. A free lock has no record. One without holders has a
/// queue of requests that wait for something else as well.
///
/// Nearly all locks have one holder of the whole name since they began, and nobody waits. Of such a
/// lock the token and the mode say everything; anything more is in a Crowd, which lives as long as
/// the lock. A million locks are held, hence the trouble.
class Lock {
 public:
  struct Counters {
    Revision create_revision{};  ///< When its first holder came.
    Revision mod_revision{};     ///< When its holders last changed.
    std::uint64_t version = 0;   ///< How often they changed since create_revision.

    friend bool operator==(const Counters&, const Counters&) = default;
  };

  /// Of a semaphore; 0 for all others.
  [[nodiscard]] std::uint32_t capacity() const noexcept { return full_ ? full_->capacity : 0; }
  [[nodiscard]] Counters counters() const noexcept;
  [[nodiscard]] Revision create_revision() const noexcept { return counters().create_revision; }
  [[nodiscard]] Revision mod_revision() const noexcept { return counters().mod_revision; }
  [[nodiscard]] std::uint64_t version() const noexcept { return counters().version; }

  /// By token.
  [[nodiscard]] std::span<const FencingToken> holds() const noexcept;
  [[nodiscard]] bool has_holder(FencingToken token) const;
  [[nodiscard]] const TurnQueue& queue() const noexcept { return full().queue; }
  [[nodiscard]] Load held() const noexcept;
  [[nodiscard]] const Load& queued() const noexcept { return full().queued; }
  [[nodiscard]] const RangeIndex& ranges() const noexcept {
    return full().ranges;
  }  ///< Of a space.
  [[nodiscard]] bool is_free() const noexcept { return holds().empty() && queue().empty(); }

  void add(const HeldClaim& stake, Revision when);
  /// The holder stays, maybe with other claims.
  void remove(const HeldClaim& stake, Revision when);
  void remove_holder(FencingToken token);
  void replace(const HeldClaim& old, const HeldClaim& next, Revision when);
  void join(const Turn& turn, const Claim& claim);
  /// Only this claim of the turn.
  void leave(const Turn& turn, const Claim& claim);
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

  /// An empty one if there is none.
  [[nodiscard]] const FullState& full() const noexcept;
  /// There is one from now on.
  FullState& inflate();
  static void change(FullState& full, Revision when);

  FencingToken sole_holder_{};  ///< The holder when there is no crowd; 0 is nobody.
  LockMode mode_{};             ///< In which it holds all of the name.
  CowPtr<FullState> full_;
};

}  // namespace tenure::core
