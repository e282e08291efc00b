#include "sys/latch.hpp"

#include <thread>

#include "sys/parking.hpp"

namespace tenure::sys {

void Latch::lock_slowly() noexcept {
  // A holder needs well under a microsecond unless it was preempted; then further spinning only
  // delays it.
  constexpr int spins_before_yield = 128;
  for (;;) {
    for (int spin = 0; spin < spins_before_yield; ++spin) {
      relax();
      if (taken_.load(std::memory_order_relaxed) == 0 &&
          taken_.exchange(1, std::memory_order_acquire) == 0) {
        return;
      }
    }
    std::this_thread::yield();
  }
}

}  // namespace tenure::sys
