#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>

namespace tenure::sys {

/// Tells the CPU that this is a spin loop.
inline void relax() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Sleeps while `word` has the value `while_equal`, until unpark() or the deadline; may also
/// return for no reason. Ours, because std::atomic::wait has no deadline.
void park(const std::atomic<std::uint32_t>& word, std::uint32_t while_equal,
          std::optional<std::chrono::steady_clock::time_point> deadline);

/// Wakes who is parked on `word`. Uses the address only: the word may be gone already, which at
/// worst wakes somebody else for no reason.
void unpark(const std::atomic<std::uint32_t>* word) noexcept;

}  // namespace tenure::sys
