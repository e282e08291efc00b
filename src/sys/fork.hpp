#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

namespace tenure::sys {

/// Generation of this process: it changes in the child of every fork() after watch_forks(). A value
/// kept from before tells a child from its parent, as getpid() would without a system call.
class ForkEpoch {
 public:
  [[nodiscard]] static std::uint32_t now() noexcept {
    return current_.load(std::memory_order_relaxed);
  }

 private:
  friend void advance_in_child() noexcept;  // a fork() handler
  static std::atomic<std::uint32_t> current_;
};

/// Registers the fork() handlers (pthread_atfork) of this process. More than once does no harm.
/// Thread safe.
void watch_forks();

/// Has a descriptor closed in every child of fork(), so that a child neither uses the connection of
/// its parent nor keeps it open. REQUIRES: reset() before the descriptor is closed. Thread safe.
class ClosedInChild {
 public:
  explicit ClosedInChild(int descriptor);
  /// Of the descriptor that `open` returns; no fork() comes in between. Negative: there is none.
  explicit ClosedInChild(const std::function<int()>& open);
  ClosedInChild(const ClosedInChild&) = delete;
  ClosedInChild& operator=(const ClosedInChild&) = delete;
  ~ClosedInChild() { reset(); }

  [[nodiscard]] int descriptor() const noexcept { return descriptor_; }
  void reset() noexcept;

 private:
  int descriptor_ = -1;
};

}  // namespace tenure::sys
