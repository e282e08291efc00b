#pragma once

#include <atomic>
#include <cstdint>

namespace tenure::core {

/// Atomic reference count of shared memory; begins at 1. The only part of core/ that is aware of
/// threads, because another thread encodes the image of the state; no outcome depends on it. Thread
/// safe.
class RefCount {
 public:
  void add() noexcept { count_.fetch_add(1, std::memory_order_relaxed); }
  /// Drops one reference. Returns true if it was the last one; all accesses through the other
  /// references happened before.
  [[nodiscard]] bool drop() noexcept {
    // The last owner has no concurrent reader of the count, so it saves the atomic decrement.
    return is_unique() || count_.fetch_sub(1, std::memory_order_acq_rel) == 1;
  }
  /// Whether this is the only reference. Synchronises with drop() like drop() itself.
  [[nodiscard]] bool is_unique() const noexcept {
    return count_.load(std::memory_order_acquire) == 1;
  }

 private:
  std::atomic<std::uint32_t> count_{1};
};

}  // namespace tenure::core
