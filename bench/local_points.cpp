#include <cstdint>
#include <string>

#include <benchmark/benchmark.h>

#include <tenure/tenure.hpp>

#include "contenders.hpp"
#include "workload.hpp"

/// Single locks: one acquire and one release are one operation.

namespace tenure::bench {
namespace {

[[nodiscard]] TxnId txn_of(const benchmark::State& state) {
  return TxnId{static_cast<std::uint64_t>(state.thread_index()) + 1};
}

[[nodiscard]] Draw draw_of(const benchmark::State& state) {
  return Draw(static_cast<std::uint64_t>(state.thread_index()) * 7919);
}

/// Two threads rarely meet on one of a million resources; a refusal counts as a result.
template <class C>
void random_exclusive(benchmark::State& state) {
  typename C::Session session(*Shared<C>::table, txn_of(state));
  Draw draw = draw_of(state);
  for (auto _ : state) {
    const ResourceId resource{draw.below(resource_count)};
    if (session.acquire(resource, LockMode::exclusive)) {
      session.release(resource);
    }
  }
}

template <class C>
void one_resource(benchmark::State& state, ResourceId resource, LockMode mode) {
  typename C::Session session(*Shared<C>::table, txn_of(state));
  for (auto _ : state) {
    if (session.acquire(resource, mode)) {
      session.release(resource);
    } else {
      state.SkipWithError("refused");
    }
  }
}

template <class C>
void hot_shared(benchmark::State& state) {
  one_resource<C>(state, ResourceId{7}, LockMode::shared);
}

/// Each thread has a resource of its own; what is measured is how they disturb each other.
template <class C>
void disjoint_exclusive(benchmark::State& state) {
  one_resource<C>(state, ResourceId{txn_of(state).get() * 1'000}, LockMode::exclusive);
}

template <class C>
void upgrade(benchmark::State& state) {
  typename C::Session session(*Shared<C>::table, txn_of(state));
  Draw draw = draw_of(state);
  for (auto _ : state) {
    const ResourceId resource{draw.below(resource_count)};
    if (!session.acquire(resource, LockMode::shared) ||
        !session.acquire(resource, LockMode::exclusive)) {
      state.SkipWithError("refused");
      break;
    }
    session.release_upgraded(resource);
  }
}

template <class C>
benchmark::internal::Benchmark* add(const std::string& name, void (*run)(benchmark::State&)) {
  return benchmark::RegisterBenchmark(name.c_str(), run)
      ->Setup(&Shared<C>::make)
      ->Teardown(&Shared<C>::end);
}

}  // namespace

// 004.096 acquire_release exclusive and shared, upgrade, contended disjoint, request granted
// 004.097
void register_points() {
  using Everybody = decltype(PointContenders() + OursWaiting() +
                             Contenders<LockDbRecreationRequest, MutexMap<ResourceId>>());
  for_each(Everybody(), "point_x", []<class C>(const std::string& name) {
    add<C>(name, &random_exclusive<C>)->Threads(1)->Threads(2);
  });
  for_each(PointContenders() + Contenders<SharedMutexMap>(), "hot_s",
           []<class C>(const std::string& name) {
             add<C>(name, &hot_shared<C>)->Threads(1)->Threads(2);
           });
  for_each(
      PointContenders() + Contenders<MutexMap<ResourceId>>(), "disjoint_x",
      []<class C>(const std::string& name) { add<C>(name, &disjoint_exclusive<C>)->Threads(2); });
  for_each(PointContenders(), "upgrade",
           []<class C>(const std::string& name) { add<C>(name, &upgrade<C>)->Threads(1); });
}

}  // namespace tenure::bench
