#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include <benchmark/benchmark.h>

#include <tenure/tenure.hpp>

#include "contenders.hpp"
#include "workload.hpp"

/// Resources that have names instead of numbers. lock-db has numbers only.

namespace tenure::bench {
namespace {

template <class C>
void random_name(benchmark::State& state) {
  typename C::Session session(*Shared<C>::table, TxnId{1});
  Draw draw(1);
  RowName row;
  for (auto _ : state) {
    const std::string_view name = row.of(draw.below(resource_count));
    if (session.acquire(name, LockMode::exclusive)) {
      session.release(name);
    }
  }
}

/// lock_path() of four steps and unlock_all(); a contender without paths locks the four names one
/// by one.
template <class C>
void four_steps(benchmark::State& state) {
  typename C::Session session(*Shared<C>::table, TxnId{1});
  Draw draw(1);
  RowName row;
  for (auto _ : state) {
    const std::string_view leaf = row.of(draw.below(resource_count));
    if constexpr (requires(std::array<std::string_view, 4> path) {
                    session.acquire_path(path, LockMode::exclusive);
                  }) {
      const std::array<std::string_view, 4> path{"db", "users", "page", leaf.substr(9)};
      benchmark::DoNotOptimize(session.acquire_path(path, LockMode::exclusive));
    } else {
      for (const std::string_view node : {"db", "db/users", "db/users/page"}) {
        benchmark::DoNotOptimize(session.acquire(node, LockMode::intention_exclusive));
      }
      benchmark::DoNotOptimize(session.acquire(leaf, LockMode::exclusive));
    }
    session.release_all();
  }
}

template <class C>
void add(const std::string& name, void (*run)(benchmark::State&)) {
  benchmark::RegisterBenchmark(name.c_str(), run)
      ->Setup(&Shared<C>::make)
      ->Teardown(&Shared<C>::end);
}

}  // namespace

void register_names() {
  using Named =
      decltype(OursTry() + Berkeley() + RocksPoints() + Contenders<MutexMap<std::string>>());
  for_each(Named(), "name_x",
           []<class C>(const std::string& name) { add<C>(name, &random_name<C>); });

  using Paths = decltype(Contenders<OursByHandle<Verb::try_lock>>() + Berkeley() + RocksPoints());
  for_each(Paths(), "path_4",
           []<class C>(const std::string& name) { add<C>(name, &four_steps<C>); });
}

}  // namespace tenure::bench
