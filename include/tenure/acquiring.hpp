#pragma once

#include <coroutine>
#include <functional>
#include <optional>
#include <utility>

#include <tenure/error.hpp>

namespace tenure {

/// An acquisition that begins when it is awaited: `Result<Guard> guard = co_await …lock_async();`,
/// or the giving back of one. If it does not have to wait, the coroutine goes on at once; else it
/// resumes on the client's notifier thread, which it must not hold up: hop to your own executor
/// before long work. It blocks no thread while it waits.
///
/// REQUIRES: the coroutine is not destroyed while it waits; call it off by the stop_token instead.
template <class T>
class [[nodiscard]] Acquiring {
 public:
  /// Takes the outcome, once.
  using Done = std::move_only_function<void(Result<T>)>;
  /// Answers at once, or later by calling Done.
  using Start = std::move_only_function<std::optional<Result<T>>(Done)>;

  /// By the library: see Mutex::lock_async() and the like.
  explicit Acquiring(Start start) : start_(std::move(start)) {}

  /// What `co_await` calls.
  [[nodiscard]] static bool await_ready() noexcept { return false; }
  bool await_suspend(std::coroutine_handle<> waiting) {
    // The coroutine may resume elsewhere, and we be gone, before start() returns.
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
