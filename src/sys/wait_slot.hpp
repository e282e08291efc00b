#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>

#include "sys/parking.hpp"

namespace tenure::sys {

/// One-shot event that one thread waits for through a Parker:
///
///   waiting thread                       signalling thread
///     parker.wait(slot, deadline);         reply = ...;
///     if (slot.is_signalled()) use(reply); parker.signal(slot);
///
/// The state is a set of bits:
///
///   signalled  The event has happened.
///   parked     A thread is blocked on the slot and has to be woken.
///   leading    The waiting thread runs an event loop (net::EventLoopRunner).
///
/// A signal does not access the slot after it has set `signalled`, except for its address. So the
/// waiting thread may destroy the slot as soon as it sees the signal.
class WaitSlot {
 public:
  /// None: wait without a limit.
  using Deadline = std::optional<std::chrono::steady_clock::time_point>;

  WaitSlot() = default;
  WaitSlot(const WaitSlot&) = delete;
  WaitSlot& operator=(const WaitSlot&) = delete;
  ~WaitSlot() = default;

  [[nodiscard]] bool is_signalled() const noexcept { return has(signalled); }
  /// Makes the slot ready for another wait. REQUIRES: no thread waits.
  void reset() noexcept { state_.fetch_and(~signalled); }

  // For parkers.

  /// Blocks until the slot is signalled, or made the leader, or until the deadline.
  void park(Deadline deadline) {
    auto seen = state_.fetch_or(parked) | parked;
    while ((seen & (signalled | leading)) == 0 && !has_passed(deadline)) {
      sys::park(state_, seen, deadline);
      seen = state_.load();
    }
    state_.fetch_and(~parked);
  }
  /// Sets `signalled` and wakes a blocked thread. Returns true if the waiting thread runs the event
  /// loop instead and may have to be interrupted.
  bool signal() noexcept { return set(signalled) == leading; }
  /// Makes the waiting thread the leader.
  void promote() noexcept { static_cast<void>(set(leading)); }
  void demote() noexcept { state_.fetch_and(~leading); }
  [[nodiscard]] bool is_leading() const noexcept { return has(leading); }

  [[nodiscard]] static bool has_passed(Deadline deadline) noexcept {
    return deadline && std::chrono::steady_clock::now() >= *deadline;
  }

 private:
  friend class WaitSlotQueue;
  static constexpr std::uint32_t signalled = 1;
  static constexpr std::uint32_t parked = 2;
  static constexpr std::uint32_t leading = 4;

  [[nodiscard]] bool has(std::uint32_t bit) const noexcept { return (state_.load() & bit) != 0; }
  /// Returns the state before.
  std::uint32_t set(std::uint32_t bit) noexcept {
    const auto before = state_.fetch_or(bit);
    if ((before & parked) != 0) {
      unpark(&state_);
    }
    return before;
  }

  std::atomic<std::uint32_t> state_ = 0;
  /// Neighbours in a WaitSlotQueue.
  WaitSlot* previous_ = nullptr;
  WaitSlot* next_ = nullptr;
  bool is_queued_ = false;
};

/// Intrusive FIFO queue of wait slots. Not thread safe.
class WaitSlotQueue {
 public:
  void push_back(WaitSlot& slot) noexcept {
    slot.previous_ = last_;
    slot.next_ = nullptr;
    slot.is_queued_ = true;
    (last_ == nullptr ? first_ : last_->next_) = &slot;
    last_ = &slot;
  }
  /// Returns null if the queue is empty.
  [[nodiscard]] WaitSlot* pop_front() noexcept {
    auto* const slot = first_;
    if (slot != nullptr) {
      remove(*slot);
    }
    return slot;
  }
  /// Does nothing if the slot is not in the queue.
  void remove(WaitSlot& slot) noexcept {
    if (!slot.is_queued_) {
      return;
    }
    (slot.previous_ == nullptr ? first_ : slot.previous_->next_) = slot.next_;
    (slot.next_ == nullptr ? last_ : slot.next_->previous_) = slot.previous_;
    slot.is_queued_ = false;
  }

 private:
  WaitSlot* first_ = nullptr;
  WaitSlot* last_ = nullptr;
};

}  // namespace tenure::sys
