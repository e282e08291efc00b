#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "ours.hpp"
#include "peers/floor.hpp"
#include "peers/lock_db_recreation.hpp"
#ifdef TENURE_BENCH_BERKELEY_DB
#include "peers/berkeley_db.hpp"
#endif
#ifdef TENURE_BENCH_ROCKSDB
#include "peers/rocksdb.hpp"
#endif

/// Contenders of each row. A contender is a type with a `name`, a constructor that takes the number
/// of locks that will be held at once, and a nested Session (contender, TxnId): one transaction of
/// one thread, with acquire() that never waits, release(), and where it has them release_all(),
/// release_upgraded(), acquire_range() and release_range().

namespace tenure::bench {

template <class... Contender>
struct Contenders {};

template <class... A, class... B>
constexpr Contenders<A..., B...> operator+(Contenders<A...> /*left*/, Contenders<B...> /*right*/) {
  return {};
}

using OursTry = Contenders<OursByHandle<Verb::try_lock>, OursById<Verb::try_lock>>;
using OursWaiting =
    Contenders<OursByHandle<Verb::lock>, OursById<Verb::lock>, OursById<Verb::request>>;

#ifdef TENURE_BENCH_BERKELEY_DB
using Berkeley = Contenders<BerkeleyDb>;
#else
using Berkeley = Contenders<>;
#endif

#ifdef TENURE_BENCH_ROCKSDB
using RocksPoints = Contenders<RocksDb<RocksLocks::points>>;
using RocksRanges = Contenders<RocksDb<RocksLocks::ranges>>;
#else
using RocksPoints = Contenders<>;
using RocksRanges = Contenders<>;
#endif

/// Tenure and all contenders that support point locks with modes.
using PointContenders =
    decltype(OursTry() + Contenders<LockDbRecreation>() + Berkeley() + RocksPoints());

/// Calls `visit.template operator()<C>("row/contender")` for each contender C.
template <class... C, class Visitor>
void for_each(Contenders<C...> /*list*/, const std::string& row, Visitor visit) {
  (visit.template operator()<C>(row + "/" + std::string(C::name)), ...);
}

/// The contender that the threads of one run share; made before they start, gone after.
template <class C>
struct Shared {
  inline static std::unique_ptr<C> table;

  static void make(const benchmark::State& /*state*/) { table = std::make_unique<C>(1'000); }
  static void end(const benchmark::State& /*state*/) { table.reset(); }
};

/// What was kept from one repetition to the next and ends with main(), not after it: RocksDB's
/// thread-local state is gone by then.
inline std::vector<std::function<void()>> at_end_of_main;

/// Every row of one subject; each in a file of its own.
void register_points();
void register_transactions();
void register_ranges();
void register_deadlocks();
void register_names();
void register_hand_over();

}  // namespace tenure::bench
