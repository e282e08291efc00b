#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <thread>
#include <utility>
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

/// The same of what several threads measured.
inline void print_all(const std::vector<std::vector<std::uint32_t>>& samples,
                      std::chrono::seconds duration) {
  std::vector<std::uint32_t> all;
  for (const auto& one : samples) {
    all.insert(all.end(), one.begin(), one.end());
  }
  print(std::move(all), duration);
}

/// Runs `turn(number)`, which returns its duration, in the given number of threads until the time
/// is over, and prints the measurements.
template <class Turn>
void run_threads(std::size_t threads, std::chrono::seconds duration, Turn turn) {
  const Period period{.duration = duration};
  std::vector<std::vector<std::uint32_t>> samples(threads);
  {
    std::vector<std::jthread> running;
    for (std::size_t n = 0; n < threads; ++n) {
      running.emplace_back([&, n] {
        while (!period.is_over()) {
          const auto began = Clock::now();
          const auto took = turn(n);
          if (period.counts(began)) {
            samples[n].push_back(took);
          }
        }
      });
    }
  }
  print_all(samples, duration);
}

/// The same with `clients[number]`: lock + unlock.
template <class Clients>
void run_cycles(Clients& clients, std::chrono::seconds duration) {
  run_threads(clients.size(), duration, [&](std::size_t n) {
    const auto began = Clock::now();
    clients[n]->lock();
    clients[n]->unlock();
    return microseconds_since(began);
  });
}

/// All threads compete for one lock: time from just before a release to the next grant.
template <class Clients>
void run_hand_over(Clients& clients, std::chrono::seconds duration) {
  std::atomic<Clock::time_point> released = Clock::now();
  run_threads(clients.size(), duration, [&](std::size_t n) {
    clients[n]->lock();
    const auto took = microseconds_since(released);
    released = Clock::now();
    clients[n]->unlock();
    return took;
  });
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
