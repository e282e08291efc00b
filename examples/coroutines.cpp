// Readers share a lock and a writer waits in the queue without blocking a thread: co_await instead
// of lock().

#include <coroutine>
#include <exception>
#include <latch>

#include <tenure/tenure.hpp>

#include "check.hpp"

namespace {

/// Minimal detached coroutine. Use the task type of your coroutine library instead.
struct Task {
  struct promise_type {
    static Task get_return_object() { return {}; }
    static std::suspend_never initial_suspend() noexcept { return {}; }
    static std::suspend_never final_suspend() noexcept { return {}; }
    static void return_void() {}
    [[noreturn]] static void unhandled_exception() { std::terminate(); }
  };
};

Task refresh_catalogue(tenure::RwLock catalogue, std::latch& finished) {
  {
    const auto guard = co_await catalogue.lock_async();
    check(guard.has_value(), "the writer holds the lock exclusively");
  }
  finished.count_down();
}

}  // namespace

int main() {
  const auto client = tenure::connect("memory://").or_throw();
  const auto catalogue = client.rw_lock("catalogue");
  std::latch finished(1);

  auto one = catalogue.lock_shared().or_throw();
  auto two = catalogue.lock_shared().or_throw();
  check(one && two, "two readers hold the lock at the same time");
  refresh_catalogue(catalogue, finished);
  check(!catalogue.try_lock_shared(), "the writer waits and bars later readers");
  check(one.unlock() && two.unlock(), "the readers release the lock");
  finished.wait();
  check(catalogue.try_lock_shared().has_value(), "a reader acquires the lock again");
}
