#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <vector>

namespace tenure::bench {

/// The same for every process of the machine, so that moments of two of them can be compared.
using Clock = std::chrono::steady_clock;

inline std::uint32_t microseconds_since(Clock::time_point began) {
  return static_cast<std::uint32_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - began).count());
}

/// Set by SIGINT: the load is wanted no longer, its figures are.
inline std::atomic<bool> is_interrupted = false;

/// When a load counts: after half a second to warm up.
struct Period {
  std::chrono::seconds duration;
  Clock::time_point counts_from = Clock::now() + std::chrono::milliseconds(500);
  Clock::time_point ends = counts_from + duration;

  [[nodiscard]] bool is_over() const { return is_interrupted || Clock::now() >= ends; }
  /// Does something count that began then and has just ended?
  [[nodiscard]] bool counts(Clock::time_point began) const {
    return began >= counts_from && !is_over();
  }
};

/// One line of JSON about what was measured.
inline void print(std::vector<std::uint32_t> microseconds, std::chrono::seconds duration) {
  std::ranges::sort(microseconds);
  const auto at = [&](double part) {
    const auto last = static_cast<double>(microseconds.empty() ? 0 : microseconds.size() - 1);
    return microseconds.empty() ? 0U : microseconds[static_cast<std::size_t>(part * last)];
  };
  std::printf(
      "{\"cycles\": %zu, \"seconds\": %lld, \"p50_us\": %u, \"p99_us\": %u, \"max_us\": %u}\n",
      microseconds.size(), static_cast<long long>(duration.count()), at(0.5), at(0.99), at(1.0));
}

/// One line of JSON that names a moment, for a program that compares those of two processes.
inline void print_moment(Clock::time_point when) {
  std::printf(
      "{\"moment_us\": %lld}\n",
      static_cast<long long>(
          std::chrono::duration_cast<std::chrono::microseconds>(when.time_since_epoch()).count()));
  std::fflush(stdout);
}

}  // namespace tenure::bench
