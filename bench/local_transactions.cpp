#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include <benchmark/benchmark.h>

#include <tenure/tenure.hpp>

#include "contenders.hpp"
#include "workload.hpp"

/// Several locks and their common end are one operation.

namespace tenure::bench {
namespace {

/// IX IX IX X from the database down to a row, then release_all.
template <class C>
void four_levels(benchmark::State& state) {
  constexpr std::array modes{LockMode::intention_exclusive, LockMode::intention_exclusive,
                             LockMode::intention_exclusive, LockMode::exclusive};
  const auto thread = static_cast<std::uint64_t>(state.thread_index());
  typename C::Session session(*Shared<C>::table, TxnId{thread + 1});
  Draw draw(thread);
  for (auto _ : state) {
    const Levels levels = draw_levels(draw);
    for (std::size_t depth = 0; depth < levels.size(); ++depth) {
      benchmark::DoNotOptimize(session.acquire(levels[depth], modes[depth]));
    }
    session.release_all();
  }
}

/// 16 rows of a million in X, then release_all.
template <class C>
void sixteen_locks(benchmark::State& state) {
  const auto thread = static_cast<std::uint64_t>(state.thread_index());
  typename C::Session session(*Shared<C>::table, TxnId{thread + 1});
  Draw draw(thread);
  for (auto _ : state) {
    for (int taken = 0; taken < 16; ++taken) {
      const ResourceId resource{draw.below(resource_count)};
      benchmark::DoNotOptimize(session.acquire(resource, LockMode::exclusive));
    }
    session.release_all();
  }
}

template <class C>
void add(const std::string& name, void (*run)(benchmark::State&)) {
  benchmark::RegisterBenchmark(name.c_str(), run)
      ->Setup(&Shared<C>::make)
      ->Teardown(&Shared<C>::end)
      ->Threads(1)
      ->Threads(2);
}

}  // namespace

// 004.096 release_all (amortised)
// 004.097
void register_transactions() {
  for_each(PointContenders(), "levels_4",
           []<class C>(const std::string& name) { add<C>(name, &four_levels<C>); });
  for_each(PointContenders(), "locks_16",
           []<class C>(const std::string& name) { add<C>(name, &sixteen_locks<C>); });
}

}  // namespace tenure::bench
