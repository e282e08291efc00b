#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <benchmark/benchmark.h>

#include <tenure/tenure.hpp>

#include "contenders.hpp"
#include "deadlock_peers.hpp"

/// Cost of deadlock detection: one request that waits and finds no cycle, and the call that cancels
/// it. Both are counted.

namespace tenure::bench {
namespace {

/// Transactions by number, and the wait-for graph between them.
struct OursWaits {
  static constexpr std::string_view name = "ours_request";

  void hold(TxnId txn, ResourceId resource) const {
    benchmark::DoNotOptimize(locks.try_acquire(txn, resource, LockMode::exclusive).has_value());
  }
  void prepare_wait(TxnId txn, ResourceId resource) const {
    benchmark::DoNotOptimize(locks.request(txn, resource, LockMode::exclusive).is_waiting());
  }
  [[nodiscard]] bool wait_and_cancel(TxnId txn, ResourceId resource) const {
    const bool waits = locks.request(txn, resource, LockMode::exclusive).is_waiting();
    locks.cancel_wait(txn);
    return waits;
  }
  [[nodiscard]] bool request_and_release(TxnId txn, ResourceId resource) const {
    const bool granted = locks.request(txn, resource, LockMode::exclusive).is_granted();
    return granted && locks.release(txn, resource).has_value();
  }

  LockManager locks;
};

struct RecreationWaits {
  static constexpr std::string_view name = "lock_db_recreation";

  void hold(TxnId txn, ResourceId resource) {
    benchmark::DoNotOptimize(table.try_acquire(txn, resource, LockMode::exclusive));
  }
  void prepare_wait(TxnId txn, ResourceId resource) {
    table.prepare_wait(txn, resource, LockMode::exclusive);
  }
  [[nodiscard]] bool wait_and_cancel(TxnId txn, ResourceId resource) {
    const auto outcome = table.request(txn, resource, LockMode::exclusive);
    table.cancel_wait(txn);
    return outcome == LockDbRecreation::Outcome::waiting;
  }
  [[nodiscard]] bool request_and_release(TxnId txn, ResourceId resource) {
    return table.request(txn, resource, LockMode::exclusive) ==
               LockDbRecreation::Outcome::granted &&
           table.release(txn, resource);
  }

  LockDbRecreation table;
};

constexpr TxnId asker{1'000'000'000};
constexpr TxnId holder_of_wanted{1'000'000'001};
constexpr TxnId waits_for_asker{1'000'000'002};
constexpr ResourceId wanted{1'000'000'000};
constexpr ResourceId free_resource{1'000'000'001};
constexpr ResourceId held_by_asker{1'000'000'002};

/// `count` pairs: one holds a resource, the other waits for it; no pair knows of another.
template <class Waits>
[[nodiscard]] std::unique_ptr<Waits> unrelated(std::uint64_t count) {
  auto waits = std::make_unique<Waits>();
  for (std::uint64_t pair = 1; pair <= count; ++pair) {
    waits->hold(TxnId{2 * pair}, ResourceId{pair});
    waits->prepare_wait(TxnId{(2 * pair) + 1}, ResourceId{pair});
  }
  waits->hold(holder_of_wanted, wanted);
  return waits;
}

/// Transaction n holds resource n and waits for n + 1; a request for resource 1 waits for the
/// chain.
template <class Waits>
[[nodiscard]] std::unique_ptr<Waits> chain(std::uint64_t length) {
  auto waits = std::make_unique<Waits>();
  for (std::uint64_t link = 1; link <= length; ++link) {
    waits->hold(TxnId{link}, ResourceId{link});
  }
  for (std::uint64_t link = 1; link < length; ++link) {
    waits->prepare_wait(TxnId{link}, ResourceId{link + 1});
  }
  return waits;
}

/// Lets a transaction wait for the asker, so that its request could close a cycle and no contender
/// can skip the search.
template <class Waits>
void wait_for_asker(Waits& waits) {
  waits.hold(asker, held_by_asker);
  waits.prepare_wait(waits_for_asker, held_by_asker);
}

template <class Waits>
void check_among_unrelated(benchmark::State& state) {
  const auto waits = unrelated<Waits>(static_cast<std::uint64_t>(state.range(0)));
  wait_for_asker(*waits);
  for (auto _ : state) {
    if (!waits->wait_and_cancel(asker, wanted)) {
      state.SkipWithError("did not wait");
    }
  }
}

template <class Waits>
void check_chain(benchmark::State& state) {
  const auto waits = chain<Waits>(static_cast<std::uint64_t>(state.range(0)));
  wait_for_asker(*waits);
  for (auto _ : state) {
    if (!waits->wait_and_cancel(asker, ResourceId{1})) {
      state.SkipWithError("did not wait");
    }
  }
}

template <class Waits>
void granted_among_unrelated(benchmark::State& state) {
  const auto waits = unrelated<Waits>(static_cast<std::uint64_t>(state.range(0)));
  for (auto _ : state) {
    if (!waits->request_and_release(asker, free_resource)) {
      state.SkipWithError("not granted");
    }
  }
}

}  // namespace

// 004.096 request granted vs waiters
// 004.097
void register_deadlocks() {
  using Everybody = Contenders<OursWaits, RecreationWaits>;
  for_each(Everybody(), "granted_among", []<class C>(const std::string& name) {
    benchmark::RegisterBenchmark(name.c_str(), &granted_among_unrelated<C>)->Arg(0)->Arg(10'000);
  });
  for_each(Everybody(), "deadlock_unrelated", []<class C>(const std::string& name) {
    benchmark::RegisterBenchmark(name.c_str(), &check_among_unrelated<C>)->Arg(10'000);
  });
  for_each(Everybody(), "deadlock_chain", []<class C>(const std::string& name) {
    benchmark::RegisterBenchmark(name.c_str(), &check_chain<C>)->Arg(1'000)->Arg(10'000);
  });
  register_threaded_deadlock_peers();
}

}  // namespace tenure::bench
