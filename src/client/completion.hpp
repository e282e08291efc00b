#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include <tenure/error.hpp>

#include "backends/backend.hpp"

namespace tenure::detail {

/// One answer of the backend that a thread waits for. Who waits may give up; the answer then goes
/// nowhere.
template <class T>
class Completion {
 public:
  explicit Completion(backends::Backend& backend) : backend_(backend) {}

  [[nodiscard]] auto callback() {
    return [box = box_, &backend = backend_](Result<T> answer) {
      box->answer.emplace(std::move(answer));
      if (box->phase.exchange(Phase::answered) == Phase::asleep) {
        backend.wake(box->nap);
      }
    };
  }

  /// Nothing if none comes in time.
  [[nodiscard]] std::optional<Result<T>> wait_for(std::chrono::nanoseconds patience) {
    if (!is_answered()) {
      sleep_until(std::chrono::steady_clock::now() + patience);
    }
    return is_answered() ? std::move(box_->answer) : std::nullopt;
  }

 private:
  enum class Phase : std::uint8_t { open, asleep, answered };
  struct Box {
    std::atomic<Phase> phase = Phase::open;
    backends::Nap nap;
    std::optional<Result<T>> answer;  ///< Written before `answered`.
  };

  [[nodiscard]] bool is_answered() const noexcept { return box_->phase.load() == Phase::answered; }

  void sleep_until(std::chrono::steady_clock::time_point deadline) {
    do {
      const auto calls = box_->nap.calls();
      auto seen = Phase::open;
      if (box_->phase.compare_exchange_strong(seen, Phase::asleep) || seen == Phase::asleep) {
        backend_.sleep(box_->nap, calls, deadline);
      }
    } while (!is_answered() && std::chrono::steady_clock::now() < deadline);
  }

  backends::Backend& backend_;
  std::shared_ptr<Box> box_ = std::make_shared<Box>();
};

}  // namespace tenure::detail
