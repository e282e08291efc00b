#pragma once

#include <coroutine>
#include <functional>
#include <optional>
#include <utility>

#include <tenure/error.hpp>

namespace tenure {

/// Awaitable operation of a lock, such as Mutex::lock_async() or LockHandle::unlock_async():
/// `Result<Guard> guard = co_await mutex.lock_async();`
///
/// Lazy: the operation starts when it is awaited. If it completes without waiting, the coroutine
/// continues at once. Otherwise it is suspended, blocks no thread, and resumes on the client's
/// callback thread. Do not block that thread: switch to your own executor before long work.
///
/// REQUIRES: the coroutine is not destroyed while it is suspended here. Cancel the operation by its
/// stop_token instead.
template <class T>
class [[nodiscard]] Awaitable {
 public:
  /// Completion callback, called once.
  using Done = std::move_only_function<void(Result<T>)>;
  /// Starts the operation. Returns its outcome at once, or calls Done later.
  using Start = std::move_only_function<std::optional<Result<T>>(Done)>;

  /// Called by the library.
  explicit Awaitable(Start start) : start_(std::move(start)) {}

  /// Operations of `co_await`.
  [[nodiscard]] static bool await_ready() noexcept { return false; }
  bool await_suspend(std::coroutine_handle<> waiting) {
    // The coroutine may resume on another thread and destroy *this before start() returns.
    auto start = std::move(start_);
    auto at_once = start([this, waiting](Result<T> outcome) {
      outcome_.emplace(std::move(outcome));
      waiting.resume();
    });
    if (!at_once) {
      return true;
    }
    outcome_ = std::move(at_once);
    return false;
  }
  [[nodiscard]] Result<T> await_resume() { return *std::move(outcome_); }

 private:
  Start start_;
  std::optional<Result<T>> outcome_;
};

}  // namespace tenure
