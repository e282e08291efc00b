#pragma once

#include <chrono>
#include <thread>

namespace tenure::test {

/// How long a test that hangs may take before it fails; no test that works waits for it.
inline constexpr std::chrono::seconds patience{30};

/// Waits until `predicate()` is true. False if it still is not after 30 s.
template <class Predicate>
[[nodiscard]] bool eventually(Predicate predicate) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (!predicate()) {
    if (std::chrono::steady_clock::now() > deadline) {
      return false;
    }
    std::this_thread::yield();
  }
  return true;
}

}  // namespace tenure::test
