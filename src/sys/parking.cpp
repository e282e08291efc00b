#include "sys/parking.hpp"

#include <ctime>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace tenure::sys {

void park(const std::atomic<std::uint32_t>& word, std::uint32_t while_equal,
          std::optional<std::chrono::steady_clock::time_point> deadline) {
  timespec until{};
  if (deadline) {
    // steady_clock is CLOCK_MONOTONIC here, which FUTEX_WAIT_BITSET takes as an absolute time.
    const auto since_boot = deadline->time_since_epoch();
    const auto seconds = std::chrono::floor<std::chrono::seconds>(since_boot);
    until.tv_sec = static_cast<time_t>(seconds.count());
    until.tv_nsec = static_cast<long>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(since_boot - seconds).count());
  }
  // The result does not matter: the caller checks the word and the clock again.
  static_cast<void>(syscall(SYS_futex, &word, FUTEX_WAIT_BITSET_PRIVATE, while_equal,
                            deadline ? &until : nullptr, nullptr, FUTEX_BITSET_MATCH_ANY));
}

void unpark(const std::atomic<std::uint32_t>* word) noexcept {
  static_cast<void>(syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0));
}

}  // namespace tenure::sys
