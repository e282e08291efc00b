#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

namespace tenure::sys {

/// Fork generation of this process: changes in the child of every fork() after watch_forks(). A
/// stored value distinguishes a child from its parent, like getpid() but without a system call.
/// Thread safe.
class ForkEpoch {
 public:
  [[nodiscard]] static std::uint32_t now() noexcept {
    return current_.load(std::memory_order_relaxed);
  }

 private:
  friend void advance_in_child() noexcept;  // a fork() handler
  static std::atomic<std::uint32_t> current_;
};

/// Registers the fork() handlers (pthread_atfork) of this process. Idempotent. Thread safe.
void watch_forks();

/// Closes a descriptor in every child of fork(), so that a child neither uses the connection of its
/// parent nor keeps it open. REQUIRES: reset() before the descriptor is closed. Thread safe.
class ClosedInChild {
 public:
  explicit ClosedInChild(int descriptor);
  /// Registers the descriptor that `open` returns, if it is not negative. Atomic: no fork() happens
  /// between opening and registering.
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
