#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <latch>
#include <mutex>
#include <random>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <tenure/lock_manager/lock_manager.hpp>

namespace tenure::stress {

/// `rounds` times TENURE_STRESS (default 1; 10 for a night, 0.1 for a slow machine), at least 1.
[[nodiscard]] inline std::size_t scaled(std::size_t rounds) {
  const char* given = std::getenv("TENURE_STRESS");
  const double factor = given == nullptr ? 1.0 : std::strtod(given, nullptr);
  const double wanted = static_cast<double>(rounds) * factor;
  return wanted < 1.0 ? 1 : static_cast<std::size_t>(wanted);
}

/// Random choices of one thread. TENURE_SEED changes them all; the interleaving stays the
/// scheduler's, so a seed makes a failure likelier, not certain.
class Choices {
 public:
  explicit Choices(std::size_t thread) : random_(seed() + thread * 7919) {}

  [[nodiscard]] std::size_t below(std::size_t limit) {
    return std::uniform_int_distribution<std::size_t>(0, limit - 1)(random_);
  }
  [[nodiscard]] bool one_in(std::size_t odds) { return below(odds) == 0; }

  template <class Values>
  void shuffle(Values& values) {
    std::shuffle(values.begin(), values.end(), random_);
  }

 private:
  static std::uint64_t seed() {
    const char* given = std::getenv("TENURE_SEED");
    return given == nullptr ? 1 : std::strtoull(given, nullptr, 10);
  }

  std::mt19937_64 random_;
};

/// Ends the process with a snapshot of the locks if no thread calls tick() for a minute: a lost
/// wake-up or an unresolved deadlock then fails with its cause instead of a timeout.
class Watchdog {
 public:
  explicit Watchdog(const LockManager& locks)
      : locks_(locks), thread_([this](const std::stop_token& stop) { watch(stop); }) {}

  void tick() noexcept { ticks_.fetch_add(1, std::memory_order_relaxed); }

 private:
  static constexpr std::chrono::seconds test_timeout{60};

  void watch(const std::stop_token& stop) {
    std::mutex mutex;
    std::condition_variable_any changed;
    std::unique_lock lock(mutex);
    while (!stop.stop_requested()) {
      const std::uint64_t seen = ticks_.load();
      changed.wait_for(lock, stop, test_timeout, [] { return false; });
      if (!stop.stop_requested() && ticks_.load() == seen) {
        std::fputs("no progress for a minute:\n", stderr);
        std::fputs(to_string(locks_.snapshot()).c_str(), stderr);
        std::abort();
      }
    }
  }

  LockManager locks_;
  std::atomic<std::uint64_t> ticks_{0};
  std::jthread thread_;  // last: it reads the others
};

/// Runs `work(thread)` in `threads` threads, which begin together, and joins them.
inline void in_threads(std::size_t threads, const std::function<void(std::size_t)>& work) {
  std::latch start(static_cast<std::ptrdiff_t>(threads));
  std::vector<std::jthread> running;
  for (std::size_t thread = 0; thread < threads; ++thread) {
    running.emplace_back([&work, &start, thread] {
      start.arrive_and_wait();
      work(thread);
    });
  }
}

/// Yields the CPU at every fourth call. Called with locks held: with fewer cores than threads, they
/// would hardly ever conflict otherwise.
inline void yield_sometimes() {
  thread_local std::uint32_t calls = 0;
  if (++calls % 4 == 0) {
    std::this_thread::yield();
  }
}

/// What the lock must guarantee, counted beside it. The plain `value` lets the thread sanitizer
/// check that a grant happens after the release before it.
class Shadow {
 public:
  void enter_reading() {
    readers_.fetch_add(1);
    check(writers_.load() == 0);
    check(value_ == twin_);
    yield_sometimes();
  }
  void leave_reading() {
    check(writers_.load() == 0);
    readers_.fetch_sub(1);
  }
  void enter_writing() {
    check(writers_.fetch_add(1) == 0);
    check(readers_.load() == 0);
    ++value_;
    yield_sometimes();
  }
  void leave_writing() {
    ++twin_;
    check(readers_.load() == 0);
    writers_.fetch_sub(1);
  }

  void read() {
    enter_reading();
    leave_reading();
  }
  void write() {
    enter_writing();
    leave_writing();
  }

  [[nodiscard]] std::uint64_t violations() const { return violations_.load(); }
  [[nodiscard]] std::uint64_t writes() const { return value_; }

 private:
  void check(bool lawful) {
    if (!lawful) {
      violations_.fetch_add(1);
    }
  }

  std::atomic<int> readers_{0};
  std::atomic<int> writers_{0};
  std::atomic<std::uint64_t> violations_{0};
  std::uint64_t value_ = 0;
  std::uint64_t twin_ = 0;
};

/// Whether there is no holder and no waiter.
[[nodiscard]] inline bool all_is_free(const LockManager& locks) {
  return locks.snapshot().locks.empty() && locks.waiting_count() == 0;
}

template <class Shadows>
[[nodiscard]] std::uint64_t violations_in(const Shadows& shadows) {
  std::uint64_t sum = 0;
  for (const Shadow& shadow : shadows) {
    sum += shadow.violations();
  }
  return sum;
}

}  // namespace tenure::stress
