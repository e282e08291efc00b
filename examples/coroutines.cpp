// Readers share, a writer waits its turn, and no thread is blocked: co_await instead of lock().

#include <coroutine>
#include <exception>
#include <latch>

#include <tenure/tenure.hpp>

#include "promise.hpp"

namespace {

/// A coroutine that runs by itself. Programs that use coroutines have a better one.
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
    promise(guard.has_value(), "the writer is in, alone");
  }
  finished.count_down();
}

}  // namespace

int main() {
  const auto client = tenure::connect("memory://").value();
  const auto catalogue = client.rw_lock("catalogue");
  std::latch finished(1);

  auto one = catalogue.lock_shared().value();
  auto two = catalogue.lock_shared().value();
  promise(one && two, "two readers at once");
  refresh_catalogue(catalogue, finished);
  promise(!catalogue.try_lock_shared(), "the writer waits, and bars later readers");
  promise(one.unlock() && two.unlock(), "the readers leave");
  finished.wait();
  promise(catalogue.try_lock_shared().has_value(), "a reader again");
}
