#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>

namespace tenure::sys {

/// CPU hint for spin loops (pause, yield).
inline void relax() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Futex wait: blocks while `word` equals `while_equal`, until unpark() or the deadline. May return
/// spuriously. Not std::atomic::wait, which has no deadline.
void park(const std::atomic<std::uint32_t>& word, std::uint32_t while_equal,
          std::optional<std::chrono::steady_clock::time_point> deadline);

/// Futex wake: wakes the threads that are parked on `word`. Uses the address only, so the word may
/// have been destroyed; at worst it wakes an unrelated thread spuriously.
void unpark(const std::atomic<std::uint32_t>* word) noexcept;

}  // namespace tenure::sys
