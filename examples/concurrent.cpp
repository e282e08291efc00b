// Eight threads share one lock manager without any lock of their own around it. They count in
// plain integers; the locks alone keep the counts right.

#include <array>
#include <cstddef>
#include <string>
#include <thread>
#include <vector>

#include <tenure/tenure.hpp>

#include "promise.hpp"

using tenure::LockManager;
using tenure::LockMode;
using tenure::ResourceId;

namespace {

constexpr std::size_t thread_count = 8;
constexpr std::size_t rounds = 1'000;
constexpr std::size_t row_count = 4;

/// Counts up one row per round, each time in a transaction of its own.
void count_up(const LockManager& locks, std::array<std::size_t, row_count>& rows) {
  for (std::size_t round = 0; round < rounds; ++round) {
    const std::size_t row = round % row_count;
    const auto txn = locks.begin();
    txn.lock(ResourceId{row}, LockMode::exclusive).value();
    ++rows.at(row);
  }
}

void count_up_in_threads(const LockManager& locks, std::array<std::size_t, row_count>& rows) {
  std::vector<std::jthread> threads;
  threads.reserve(thread_count);
  for (std::size_t i = 0; i < thread_count; ++i) {
    threads.emplace_back([&] { count_up(locks, rows); });
  }
}  // a jthread joins at its end

}  // namespace

int main() {
  const LockManager locks;
  std::array<std::size_t, row_count> rows{};
  count_up_in_threads(locks, rows);

  for (std::size_t row = 0; row < row_count; ++row) {
    promise(rows.at(row) == thread_count * rounds / row_count,
            "row " + std::to_string(row) + " was counted up " + std::to_string(rows.at(row)) +
                " times, none was lost");
  }
  promise(locks.waiting_count() == 0 && locks.snapshot().locks.empty(),
          "nobody waits, nothing is held");
}
