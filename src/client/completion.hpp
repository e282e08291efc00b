#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <utility>

#include <tenure/error.hpp>

#include "backends/backend.hpp"

namespace tenure::detail {

/// Reply of a backend that a thread waits for with a timeout. Kept alive by the backend's callback.
template <class T>
class ReplySlot {
 public:
  /// Stores the reply and wakes the waiting thread. REQUIRES: called once, by the callback.
  void settle(backends::Backend& backend, Result<T> answer) {
    answer_.emplace(std::move(answer));
    backend.parker().signal(slot_);
  }

  /// std::nullopt if there is no reply in time.
  [[nodiscard]] std::optional<Result<T>> wait_for(backends::Backend& backend,
                                                  std::chrono::nanoseconds timeout) {
    if (!slot_.is_signalled()) {
      backend.parker().wait(slot_, std::chrono::steady_clock::now() + timeout);
    }
    // Checked again: the reply may have arrived when the timeout passed. The signal orders the
    // write of answer_ before this read.
    return slot_.is_signalled() ? std::move(answer_) : std::nullopt;
  }

 private:
  sys::WaitSlot slot_;
  std::optional<Result<T>> answer_;  ///< Written before the slot is signalled.
};

/// ReplySlot with shared ownership by the waiting thread and the callback: the thread may stop
/// waiting, and a late reply is then dropped.
template <class T>
class Completion {
 public:
  explicit Completion(backends::Backend& backend) : backend_(backend) {}

  /// Callback for the backend. Keeps the slot alive as long as the backend may call it.
  [[nodiscard]] auto callback() {
    return [box = box_, &backend = backend_](Result<T> answer) {
      box->settle(backend, std::move(answer));
    };
  }

  /// std::nullopt if there is no reply in time.
  [[nodiscard]] std::optional<Result<T>> wait_for(std::chrono::nanoseconds timeout) {
    return box_->wait_for(backend_, timeout);
  }

 private:
  backends::Backend& backend_;
  std::shared_ptr<ReplySlot<T>> box_ = std::make_shared<ReplySlot<T>>();
};

}  // namespace tenure::detail
