#pragma once

#include <chrono>
#include <thread>

namespace tenure::test {

/// Time after which a blocked test fails; no passing test waits for it.
inline constexpr std::chrono::seconds test_timeout{30};

/// Polls until `predicate()` is true; false after 30 s. It polls without a pause for 1 ms, then
/// sleeps between polls to leave the core to other threads.

template <class Predicate>
[[nodiscard]] bool eventually(Predicate predicate) {
  constexpr std::chrono::microseconds eager{1'000};
  constexpr std::chrono::microseconds pause{500};
  const auto began = std::chrono::steady_clock::now();
  while (!predicate()) {
    const auto waited = std::chrono::steady_clock::now() - began;
    if (waited > test_timeout) {
      return false;
    }
    waited < eager ? std::this_thread::yield() : std::this_thread::sleep_for(pause);
  }
  return true;
}

}  // namespace tenure::test
