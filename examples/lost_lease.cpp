// Stop work as soon as the lock is lost: lost() is a std::stop_token and works with every interface
// that accepts one. Here an operator revokes the lease; a network failure has the same effect.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <thread>

#include <tenure/tenure.hpp>

#include "check.hpp"

using namespace std::chrono_literals;

namespace {

/// Works until `stop` is requested; waits on a std::condition_variable_any with the token.
int drain_queue(const std::stop_token& lost, std::atomic<bool>& is_working) {
  std::mutex mutex;
  std::condition_variable_any more_work;
  std::unique_lock lock(mutex);
  int batches = 0;
  while (!lost.stop_requested()) {
    ++batches;
    is_working = true;
    more_work.wait_for(lock, lost, 1ms, [] { return false; });
  }
  return batches;
}

}  // namespace

int main() {
  const auto client = tenure::connect("memory://").or_throw();
  const auto lease = client.lease({.ttl = 10s}).or_throw();
  auto guard = client.mutex("queue/drain", {.lease = lease}).lock().or_throw();
  check(guard.owns_lock(), "the worker holds queue/drain");

  std::atomic<bool> is_working = false;
  std::jthread operator_thread([&] {
    while (!is_working) {
      std::this_thread::yield();
    }
    static_cast<void>(lease.revoke());
  });
  const int batches = drain_queue(guard.lost(), is_working);

  check(batches > 0 && !guard.owns_lock(), "the lease is lost: the worker stopped by itself");
  check(guard.unlock().error() == tenure::Errc::lease_lost,
        "unlock() returns lease_lost: later work may have raced");
  check(client.mutex("queue/drain").try_lock().has_value(), "the next worker holds queue/drain");
}
