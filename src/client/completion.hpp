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

/// One answer of a backend that a thread waits for, if it has the patience. Whoever answers keeps
/// it.
template <class T>
class Awaited {
 public:
  void settle(backends::Backend& backend, Result<T> answer) {
    answer_.emplace(std::move(answer));
    if (phase_.exchange(Phase::answered) == Phase::asleep) {
      backend.wake(nap_);
    }
  }

  /// Nothing if none comes in time.
  [[nodiscard]] std::optional<Result<T>> wait_for(backends::Backend& backend,
                                                  std::chrono::nanoseconds patience) {
    if (!is_answered()) {
      sleep_until(backend, std::chrono::steady_clock::now() + patience);
    }
    return is_answered() ? std::move(answer_) : std::nullopt;
  }

 private:
  enum class Phase : std::uint8_t { open, asleep, answered };

  [[nodiscard]] bool is_answered() const noexcept { return phase_.load() == Phase::answered; }

  void sleep_until(backends::Backend& backend, std::chrono::steady_clock::time_point deadline) {
    do {
      const auto calls = nap_.calls();
      auto seen = Phase::open;
      if (phase_.compare_exchange_strong(seen, Phase::asleep) || seen == Phase::asleep) {
        backend.sleep(nap_, calls, deadline);
      }
    } while (!is_answered() && std::chrono::steady_clock::now() < deadline);
  }

  std::atomic<Phase> phase_ = Phase::open;
  backends::Nap nap_;
  std::optional<Result<T>> answer_;  ///< Written before `answered`.
};

/// The same, kept by who asks and who answers. Who waits may give up; the answer then goes nowhere.
template <class T>
class Completion {
 public:
  explicit Completion(backends::Backend& backend) : backend_(backend) {}

  [[nodiscard]] auto callback() {
    return [box = box_, &backend = backend_](Result<T> answer) {
      box->settle(backend, std::move(answer));
    };
  }

  /// Nothing if none comes in time.
  [[nodiscard]] std::optional<Result<T>> wait_for(std::chrono::nanoseconds patience) {
    return box_->wait_for(backend_, patience);
  }

 private:
  backends::Backend& backend_;
  std::shared_ptr<Awaited<T>> box_ = std::make_shared<Awaited<T>>();
};

}  // namespace tenure::detail
