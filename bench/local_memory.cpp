#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string_view>
#include <vector>

#include <malloc.h>
#include <unistd.h>

#include <tenure/tenure.hpp>

#include "contenders.hpp"
#include "workload.hpp"

/// Bytes per held lock. A separate program with one contender per run, so that no contender reuses
/// memory that another has freed. A million locks, 16 for each of 62,500 transactions. Measured
/// from before the table is created: bytes allocated by malloc, and resident pages.

namespace tenure::bench {
namespace {

constexpr std::uint64_t transactions = 62'500;
constexpr std::uint64_t locks_each = 16;

struct Footprint {
  double allocated_bytes;
  double resident_bytes;
};

[[nodiscard]] Footprint footprint() {
  const struct mallinfo2 heap = mallinfo2();
  std::ifstream statm("/proc/self/statm");
  double pages = 0;
  double resident_pages = 0;
  statm >> pages >> resident_pages;
  return {.allocated_bytes = static_cast<double>(heap.uordblks + heap.hblkhd),
          .resident_bytes = resident_pages * static_cast<double>(sysconf(_SC_PAGESIZE))};
}

template <class C>
void measure() {
  constexpr std::uint64_t locks = transactions * locks_each;
  std::vector<typename C::Session> sessions;
  sessions.reserve(transactions);
  const Footprint before = footprint();

  C table(locks);
  std::uint64_t granted = 0;
  for (std::uint64_t number = 0; number < transactions; ++number) {
    sessions.emplace_back(table, TxnId{number + 1});
    for (std::uint64_t lock = 0; lock < locks_each; ++lock) {
      // Neighbours go to different transactions, as rows of a table do.
      const ResourceId resource{(lock * transactions) + number};
      granted += sessions.back().acquire(resource, LockMode::exclusive) ? 1U : 0U;
    }
  }

  const Footprint after = footprint();
  const auto per_lock = [&](double bytes) { return bytes / static_cast<double>(granted); };
  std::printf(
      "{\"contender\": \"%.*s\", \"locks\": %llu, "
      "\"allocated\": %.1f, \"resident\": %.1f}\n",
      static_cast<int>(C::name.size()), C::name.data(), static_cast<unsigned long long>(granted),
      per_lock(after.allocated_bytes - before.allocated_bytes),
      per_lock(after.resident_bytes - before.resident_bytes));
  sessions.clear();
}

}  // namespace
}  // namespace tenure::bench

/// bench_memory            lists the contenders
/// bench_memory CONTENDER  measures one, and prints a line of JSON
int main(int argc, char** argv) {
  using namespace tenure::bench;
  const std::string_view asked = argc > 1 ? argv[1] : "";
  bool known = false;
  for_each(PointContenders(), "", [&]<class C>(const std::string& /*name*/) {
    if (asked.empty()) {
      std::printf("%.*s\n", static_cast<int>(C::name.size()), C::name.data());
    } else if (asked == C::name) {
      known = true;
      measure<C>();
    }
  });
  return asked.empty() || known ? 0 : 1;
}
