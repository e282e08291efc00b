#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include <tenure/tenure.hpp>

#include "contenders.hpp"
#include "workload.hpp"

/// An exclusive range between live ones: one acquire and one release are one operation.

namespace tenure::bench {
namespace {

/// Live range number n is [100 n, 100 n + 49]; the gap behind it is free.
[[nodiscard]] KeyRange live_range(std::uint64_t number) {
  return *KeyRange::of(number * 100, (number * 100) + 49);
}
[[nodiscard]] KeyRange gap_after(std::uint64_t number) {
  return *KeyRange::of((number * 100) + 60, (number * 100) + 89);
}

/// A table in which `live` ranges are held, 16 by each transaction. Kept from one repetition to the
/// next.
template <class C>
class RangeTable {
 public:
  static C& with(std::uint64_t live) {
    static std::map<std::uint64_t, std::unique_ptr<RangeTable>> kept;
    std::unique_ptr<RangeTable>& table = kept[live];
    if (table == nullptr) {
      at_end_of_main.emplace_back([] { kept.clear(); });
      table = std::make_unique<RangeTable>(live);
    }
    return table->table_;
  }

  explicit RangeTable(std::uint64_t live) : table_(live) {
    for (std::uint64_t number = 0; number < live; ++number) {
      if (number % 16 == 0) {
        holders_.emplace_back(table_, TxnId{2 + (number / 16)});
      }
      hold(holders_.back(), live_range(number));
    }
  }

 private:
  static void hold(typename C::Session& holder, const KeyRange& range) {
    if constexpr (requires { holder.prepare_range(range, LockMode::exclusive); }) {
      holder.prepare_range(range, LockMode::exclusive);
    } else {
      benchmark::DoNotOptimize(holder.acquire_range(range, LockMode::exclusive));
    }
  }

  C table_;
  std::vector<typename C::Session> holders_;
};

template <class C>
void range_between_live(benchmark::State& state) {
  const auto live = static_cast<std::uint64_t>(state.range(0));
  typename C::Session session(RangeTable<C>::with(live), TxnId{1});
  Draw draw(live);
  for (auto _ : state) {
    const KeyRange range = gap_after(draw.below(live));
    if (session.acquire_range(range, LockMode::exclusive)) {
      session.release_range(range);
    } else {
      state.SkipWithError("refused");
    }
  }
}

}  // namespace

// 004.096 range vs live ranges
// 004.097
void register_ranges() {
  using Everybody = decltype(OursTry() + Contenders<LockDbRecreation>() + RocksRanges());
  for_each(Everybody(), "range", []<class C>(const std::string& name) {
    benchmark::RegisterBenchmark(name.c_str(), &range_between_live<C>)
        ->Arg(10)
        ->Arg(1'000)
        ->Arg(100'000);
  });
}

}  // namespace tenure::bench
