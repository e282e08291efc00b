#include "sys/vigil.hpp"

#include <thread>

#include <sched.h>

namespace tenure::sys {
namespace {

/// A yield that takes longer let somebody run who has more to do. Shorter turns are of those whom
/// we wait for: the kernel's own threads between a write and its end take 10 to 50 us.
constexpr std::chrono::microseconds turn_of_another{100};

}  // namespace

Vigil::Vigil(std::chrono::microseconds longest) noexcept
    : longest_(std::thread::hardware_concurrency() > 1 ? longest : std::chrono::microseconds(0)) {}

void let_others() noexcept {
  ::sched_yield();
}

bool Vigil::let_others(Clock::time_point& now) noexcept {
  const auto before = now;
  sys::let_others();
  now = Clock::now();
  return now - before < turn_of_another;
}

}  // namespace tenure::sys
