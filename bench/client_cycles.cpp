// What one client pays on memory://: cycles of lock and unlock, opening a client, handing over.
// Prints one line for each; no arguments.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <thread>

#include <tenure/client/client.hpp>

namespace tenure {
namespace {

using Clock = std::chrono::steady_clock;

/// The best of five rounds: the machine has other things to do, too.
void measure(std::string_view what, std::uint64_t steps, const auto& round) {
  double best = 1e300;
  for (int i = 0; i < 5; ++i) {
    const auto begin = Clock::now();
    round(steps);
    const std::chrono::duration<double, std::nano> took = Clock::now() - begin;
    best = std::min(best, took.count() / static_cast<double>(steps));
  }
  std::printf("%-58.*s %12.0f ns each\n", static_cast<int>(what.size()), what.data(), best);
}

void cycles() {
  const auto client = connect("memory://").value();
  const auto mutex = client.mutex("accounts/42");
  measure("mutex: lock + unlock", 200'000, [&](std::uint64_t steps) {
    for (std::uint64_t i = 0; i < steps; ++i) {
      auto guard = mutex.lock();
      static_cast<void>(guard->unlock());
    }
  });
  measure("mutex: lock, guard goes", 200'000, [&](std::uint64_t steps) {
    for (std::uint64_t i = 0; i < steps; ++i) {
      const auto guard = mutex.lock();
    }
  });
  const auto rw_lock = client.rw_lock("catalogue");
  measure("rw-lock: lock_shared + unlock", 50'000, [&](std::uint64_t steps) {
    for (std::uint64_t i = 0; i < steps; ++i) {
      auto share = rw_lock.lock_shared();
      static_cast<void>(share->unlock());
    }
  });
}

void opening() {
  measure("a client: opened, used once, closed", 200, [&](std::uint64_t steps) {
    for (std::uint64_t i = 0; i < steps; ++i) {
      const auto client = connect("memory://").value();
      const auto guard = client.mutex("a").lock();
    }
  });
}

void hand_over() {
  const auto client = connect("memory://").value();
  const auto mutex = client.mutex("a");
  measure("mutex: two threads take turns", 20'000, [&](std::uint64_t steps) {
    const auto work = [&] {
      for (std::uint64_t i = 0; i < steps / 2; ++i) {
        const auto guard = mutex.lock();
      }
    };
    const std::jthread other(work);
    work();
  });
}

}  // namespace
}  // namespace tenure

int main() {
  tenure::cycles();
  tenure::opening();
  tenure::hand_over();
}
