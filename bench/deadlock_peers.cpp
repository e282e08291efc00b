#include "deadlock_peers.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include <benchmark/benchmark.h>

#include <tenure/tenure.hpp>

#include "contenders.hpp"
#include "parked_threads.hpp"

namespace tenure::bench {
namespace {

#ifdef TENURE_BENCH_BERKELEY_DB

/// Threads that each wait for a resource of their own. One locker holds them all, which makes no
/// difference: the matrix that is searched has one row for each waiter.
class BerkeleyWaits {
 public:
  explicit BerkeleyWaits(std::size_t count)
      : table_(2 * count), holder_(table_, TxnId{}), expected_(count) {
    for (std::size_t number = 0; number < count; ++number) {
      benchmark::DoNotOptimize(holder_.acquire(ResourceId{number}, LockMode::exclusive));
    }
    start_waiters(count);
  }
  BerkeleyWaits(const BerkeleyWaits&) = delete;
  BerkeleyWaits& operator=(const BerkeleyWaits&) = delete;
  ~BerkeleyWaits() {
    holder_.release_all();
    waiters_.clear();
  }

  /// The detector runs only if a wait has started since its last run.
  void add_waiter() {
    ++expected_;
    start_waiters(1);
  }
  void check() { table_.detect(); }

 private:
  void start_waiters(std::size_t count) {
    waiters_.push_back(std::make_unique<ParkedThreads>(count, [this](std::size_t number) {
      BerkeleyDb::Session waiter(table_, TxnId{});
      benchmark::DoNotOptimize(waiter.lock(ResourceId{number}, LockMode::exclusive));
      waiter.release_all();
    }));
    while (table_.waits() < expected_) {
      std::this_thread::yield();
    }
  }

  BerkeleyDb table_;
  BerkeleyDb::Session holder_;
  std::size_t expected_;
  std::vector<std::unique_ptr<ParkedThreads>> waiters_;
};

void berkeley_unrelated(benchmark::State& state) {
  static std::optional<BerkeleyWaits> kept;
  if (!kept) {
    at_end_of_main.emplace_back([] { kept.reset(); });
    kept.emplace(static_cast<std::size_t>(state.range(0)));
  }
  for (auto _ : state) {
    state.PauseTiming();
    kept->add_waiter();
    state.ResumeTiming();
    kept->check();
  }
}

#endif

#ifdef TENURE_BENCH_ROCKSDB

/// Transaction n holds resource n and its thread waits for n + 1; the last one only holds.
class RocksChain {
 public:
  explicit RocksChain(std::size_t length) : asker_(table_, asking(brief)) {
    for (std::size_t link = 0; link < length; ++link) {
      links_.emplace_back(table_, asking(for_ever));
      benchmark::DoNotOptimize(links_.back().acquire(ResourceId{link}, LockMode::exclusive));
    }
    waiters_.emplace(length - 1, [this](std::size_t link) {
      benchmark::DoNotOptimize(links_[link].acquire(ResourceId{link + 1}, LockMode::exclusive));
      links_[link].release_all();
    });
    for (std::size_t link = 0; link + 1 < length; ++link) {
      while (!links_[link].waits()) {
        std::this_thread::yield();
      }
    }
  }
  RocksChain(const RocksChain&) = delete;
  RocksChain& operator=(const RocksChain&) = delete;
  ~RocksChain() {
    links_.back().release_all();
    waiters_.reset();
  }

  void check() { benchmark::DoNotOptimize(asker_.acquire(ResourceId{0}, LockMode::exclusive)); }

 private:
  using Rocks = RocksDb<RocksLocks::points>;

  static constexpr std::int64_t brief = 1;
  static constexpr std::int64_t for_ever = 3'600'000;

  [[nodiscard]] static rocksdb::TransactionOptions asking(std::int64_t milliseconds) {
    rocksdb::TransactionOptions options;
    options.lock_timeout = milliseconds;
    options.deadlock_detect = true;
    options.deadlock_detect_depth = 100'000;
    return options;
  }

  Rocks table_;
  std::vector<Rocks::Session> links_;
  Rocks::Session asker_;
  std::optional<ParkedThreads> waiters_;
};

void rocksdb_chain(benchmark::State& state) {
  static std::optional<RocksChain> kept;
  if (!kept) {
    at_end_of_main.emplace_back([] { kept.reset(); });
    kept.emplace(static_cast<std::size_t>(state.range(0)));
  }
  for (auto _ : state) {
    kept->check();
  }
}

#endif

}  // namespace

void register_threaded_deadlock_peers() {
#ifdef TENURE_BENCH_BERKELEY_DB
  benchmark::RegisterBenchmark("deadlock_unrelated/berkeley_db", &berkeley_unrelated)
      ->Arg(10'000)
      ->Iterations(2);
#endif
#ifdef TENURE_BENCH_ROCKSDB
  benchmark::RegisterBenchmark("deadlock_chain/rocksdb", &rocksdb_chain)
      ->Arg(1'000)
      ->Iterations(50);
#endif
}

}  // namespace tenure::bench
