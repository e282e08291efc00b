// Stop the moment the lock is lost: lost() is a std::stop_token, so it goes wherever one is taken.
// Here an operator takes the lease away; a network that stays silent for too long does the same.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <thread>

#include <tenure/tenure.hpp>

#include "promise.hpp"

using namespace std::chrono_literals;

namespace {

/// Works until it is told to stop. Sleeps as std::condition_variable_any does, with the token.
int drain_queue(std::stop_token lost, std::atomic<bool>& is_working) {
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
  const auto client = tenure::connect("memory://").value();
  const auto lease = client.lease({.ttl = 10s}).value();
  auto guard = client.mutex("queue/drain", {.lease = lease}).lock().value();
  promise(guard.owns_lock(), "the worker holds queue/drain");

  std::atomic<bool> is_working = false;
  std::jthread operator_thread([&] {
    while (!is_working) {
      std::this_thread::yield();
    }
    static_cast<void>(lease.revoke());
  });
  const int batches = drain_queue(guard.lost(), is_working);

  promise(batches > 0 && !guard.owns_lock(), "the lease is gone: the worker stopped by itself");
  promise(guard.unlock().error() == tenure::Errc::lease_lost,
          "unlock() says so too: lease_lost, what was done since may have raced");
  promise(client.mutex("queue/drain").try_lock().has_value(), "the next worker holds queue/drain");
}
