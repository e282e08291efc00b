#pragma once

#include <atomic>
#include <cstdint>

namespace tenure::core {

/// How many share a piece of memory, of which the last one frees it. They may be in different
/// threads: an image of the state is written by another one. That is the only thing in core/ which
/// knows of threads, and no outcome depends on it.
class RefCount {
 public:
  void add() noexcept { count_.fetch_add(1, std::memory_order_relaxed); }
  /// Was it the last one? What the others did with it before they left is done then.
  [[nodiscard]] bool drop() noexcept {
    // The last owner need not tell anybody that it goes.
    return is_unique() || count_.fetch_sub(1, std::memory_order_acq_rel) == 1;
  }
  /// Likewise.
  [[nodiscard]] bool is_unique() const noexcept {
    return count_.load(std::memory_order_acquire) == 1;
  }

 private:
  std::atomic<std::uint32_t> count_{1};
};

}  // namespace tenure::core
