#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include <tenure/error.hpp>

#include "sys/parking.hpp"

namespace tenure::detail {

/// One answer that a thread waits for. Who waits may give up; the answer then goes nowhere.
template <class T>
class Completion {
 public:
  [[nodiscard]] auto callback() {
    return [box = box_](Result<T> answer) {
      box->answer.emplace(std::move(answer));
      if (box->word.exchange(answered) == parked) {
        sys::unpark(&box->word);
      }
    };
  }

  /// Nothing if none comes in time.
  [[nodiscard]] std::optional<Result<T>> wait_for(std::chrono::nanoseconds patience) {
    if (box_->word.load(std::memory_order_acquire) != answered) {
      sleep_until(std::chrono::steady_clock::now() + patience);
    }
    return box_->word.load(std::memory_order_acquire) == answered ? std::move(box_->answer)
                                                                  : std::nullopt;
  }

 private:
  static constexpr std::uint32_t open = 0;
  static constexpr std::uint32_t parked = 1;
  static constexpr std::uint32_t answered = 2;
  struct Box {
    std::atomic<std::uint32_t> word = open;
    std::optional<Result<T>> answer;  ///< Written before `answered`.
  };

  void sleep_until(std::chrono::steady_clock::time_point deadline) {
    for (;;) {
      std::uint32_t seen = open;
      const bool sleeps = box_->word.compare_exchange_strong(seen, parked) || seen == parked;
      if (!sleeps || std::chrono::steady_clock::now() >= deadline) {
        return;
      }
      sys::park(box_->word, parked, deadline);
    }
  }

  std::shared_ptr<Box> box_ = std::make_shared<Box>();
};

}  // namespace tenure::detail
