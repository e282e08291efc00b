// Eight threads share one lock manager without further synchronisation. They increment plain
// integers; the locks alone keep the counts correct.

#include <array>
#include <cstddef>
#include <string>
#include <thread>
#include <vector>

#include <tenure/tenure.hpp>

#include "check.hpp"

using tenure::LockManager;
using tenure::LockMode;
using tenure::ResourceId;

namespace {

constexpr std::size_t thread_count = 8;
constexpr std::size_t rounds = 1'000;
constexpr std::size_t row_count = 4;

/// Increments one row per round, each time in a new transaction.
void count_up(const LockManager& locks, std::array<std::size_t, row_count>& rows) {
  for (std::size_t round = 0; round < rounds; ++round) {
    const std::size_t row = round % row_count;
    const auto txn = locks.begin();
    txn.lock(ResourceId{row}, LockMode::exclusive).or_throw();
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
    check(rows.at(row) == thread_count * rounds / row_count,
          "row " + std::to_string(row) + " was incremented " + std::to_string(rows.at(row)) +
              " times, no increment was lost");
  }
  check(locks.waiting_count() == 0 && locks.snapshot().locks.empty(), "no lock is held or awaited");
}
