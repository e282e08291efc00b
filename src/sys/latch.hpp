#pragma once

#include <atomic>
#include <cstdint>

#include "sys/thread_safety.hpp"

namespace tenure::sys {

/// Spin lock of four bytes for critical sections of nanoseconds: one exchange to lock, one plain
/// store to unlock. A thread that finds it locked spins briefly, then yields the CPU. Not fair, not
/// recursive.
///
/// Not std::mutex, which takes 40 bytes and a second atomic operation to unlock: the lock table has
/// thousands of latches, each in one cache line with the data that it guards.
class TENURE_CAPABILITY("latch") Latch {
 public:
  void lock() noexcept TENURE_ACQUIRE() {
    if (taken_.exchange(1, std::memory_order_acquire) != 0) [[unlikely]] {
      lock_slowly();
    }
  }

  [[nodiscard]] bool try_lock() noexcept TENURE_TRY_ACQUIRE(true) {
    return taken_.exchange(1, std::memory_order_acquire) == 0;
  }

  void unlock() noexcept TENURE_RELEASE() { taken_.store(0, std::memory_order_release); }

 private:
  void lock_slowly() noexcept;

  std::atomic<std::uint32_t> taken_ = 0;
};

/// Scoped guard of a latch. Unlike std::lock_guard it has annotations for thread safety analysis.
class TENURE_SCOPED_CAPABILITY LatchGuard {
 public:
  explicit LatchGuard(Latch& latch) noexcept TENURE_ACQUIRE(latch) : latch_(latch) {
    latch_.lock();
  }
  LatchGuard(const LatchGuard&) = delete;
  LatchGuard& operator=(const LatchGuard&) = delete;
  ~LatchGuard() TENURE_RELEASE() { latch_.unlock(); }

 private:
  Latch& latch_;
};

}  // namespace tenure::sys
