#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <benchmark/benchmark.h>

#include <tenure/tenure.hpp>

#include "contenders.hpp"

/// From the holder's call that unlocks to the moment the blocked thread has the lock, by wall
/// clock. Two threads take turns; the one that waits has been waiting for most of the holder's 3
/// µs.

namespace tenure::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto hold = std::chrono::microseconds(3);
constexpr std::size_t rounds = 4'000;

/// On a busy machine the game ends early, with fewer samples.
constexpr auto longest_game = std::chrono::milliseconds(500);

/// What a thread does to get the lock, and to let go of it.
struct Side {
  std::function<void()> lock;
  std::function<void()> unlock;
};

void pause() {
  __builtin_ia32_pause();
}

/// Spins, and lets others run after a while: the machine may have fewer free CPUs than we need.
template <class Condition>
void spin_until(Condition condition) {
  for (int spins = 0; !condition(); ++spins) {
    if (spins < 20'000) {
      pause();
    } else {
      std::this_thread::yield();
    }
  }
}

class PingPong {
 public:
  /// The samples of both sides in nanoseconds, sorted.
  [[nodiscard]] std::vector<double> play(const Side& left, const Side& right) {
    std::vector<double> of_left;
    std::vector<double> of_right;
    {
      const std::jthread other([&] { take_turns(right, 1, of_right); });
      take_turns(left, 0, of_left);
    }
    of_left.insert(of_left.end(), of_right.begin(), of_right.end());
    std::ranges::sort(of_left);
    return of_left;
  }

 private:
  /// Turn t belongs to side t % 2. A side asks for the lock as soon as the other one has it.
  void take_turns(const Side& side, std::size_t first, std::vector<double>& samples) {
    samples.reserve(rounds);
    for (std::size_t turn = first; turn < 2 * rounds; turn += 2) {
      spin_until([&] { return turns_begun_.load(std::memory_order_acquire) >= turn; });
      side.lock();
      const Clock::time_point got_it = Clock::now();
      if (got_it >= ends_at_) {
        over_ = true;
      }
      if (turn > 0) {
        samples.push_back(std::chrono::duration<double, std::nano>(got_it - unlocked_at_).count());
      }
      const bool last = over_;
      turns_begun_.store(turn + 1, std::memory_order_release);
      spin_until([&] { return Clock::now() >= got_it + hold; });
      unlocked_at_ = Clock::now();
      side.unlock();
      if (last) {
        return;
      }
    }
  }

  std::atomic<std::size_t> turns_begun_ = 0;
  Clock::time_point ends_at_ = Clock::now() + longest_game;
  Clock::time_point unlocked_at_;  ///< Guarded by the lock that is measured, as is `over_`.
  bool over_ = false;
};

void report(benchmark::State& state, const Side& left, const Side& right) {
  for (auto _ : state) {
    PingPong game;
    const std::vector<double> samples = game.play(left, right);
    const double p50 = samples[samples.size() / 2];
    state.SetIterationTime(p50 * 1e-9);
    state.counters["p99_ns"] = samples[samples.size() * 99 / 100];
  }
}

void standard_mutex(benchmark::State& state) {
  std::mutex mutex;
  const Side side{.lock = [&] { mutex.lock(); }, .unlock = [&] { mutex.unlock(); }};
  report(state, side, side);
}

void spin_lock(benchmark::State& state) {
  std::atomic_flag taken;
  const Side side{
      .lock =
          [&] {
            while (taken.test_and_set(std::memory_order_acquire)) {
              spin_until([&] { return !taken.test(std::memory_order_relaxed); });
            }
          },
      .unlock = [&] { taken.clear(std::memory_order_release); },
  };
  report(state, side, side);
}

template <class Session>
[[nodiscard]] Side side_of(Session& session) {
  static constexpr ResourceId resource{1};
  return {
      .lock =
          [&session] {
            if constexpr (requires { session.lock(resource, LockMode::exclusive); }) {
              benchmark::DoNotOptimize(session.lock(resource, LockMode::exclusive));
            } else {
              benchmark::DoNotOptimize(session.acquire(resource, LockMode::exclusive));
            }
          },
      .unlock = [&session] { session.release(resource); },
  };
}

template <class C>
void transactions(benchmark::State& state) {
  C table(16);
  typename C::Session left(table, TxnId{1});
  typename C::Session right(table, TxnId{2});
  report(state, side_of(left), side_of(right));
}

#ifdef TENURE_BENCH_ROCKSDB
void rocksdb_transactions(benchmark::State& state) {
  using Rocks = RocksDb<RocksLocks::points>;
  Rocks table;
  rocksdb::TransactionOptions patient;
  patient.lock_timeout = 10'000;
  Rocks::Session left(table, patient);
  Rocks::Session right(table, patient);
  report(state, side_of(left), side_of(right));
}
#endif

void add(const std::string& name, void (*run)(benchmark::State&)) {
  benchmark::RegisterBenchmark(name.c_str(), run)->UseManualTime()->Iterations(1);
}

}  // namespace

void register_hand_over() {
  using Blocking =
      decltype(Contenders<OursByHandle<Verb::lock>, OursById<Verb::lock>>() + Berkeley());
  for_each(Blocking(), "hand_over",
           []<class C>(const std::string& name) { add(name, &transactions<C>); });
#ifdef TENURE_BENCH_ROCKSDB
  add("hand_over/rocksdb", &rocksdb_transactions);
#endif
  add("hand_over/floor_std_mutex", &standard_mutex);
  add("hand_over/floor_spin_lock", &spin_lock);
}

}  // namespace tenure::bench
