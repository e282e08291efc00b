#pragma once

#include <chrono>
#include <thread>

namespace tenure::test {

/// How long a test that hangs may take before it fails; no test that works waits for it.
inline constexpr std::chrono::seconds test_timeout{30};

/// Waits until `predicate()` is true. False if it still is not after 30 s. HolderQueries without a pause at
/// first; what takes longer is done by others, who need the core.
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
