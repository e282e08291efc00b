#pragma once

#include <chrono>
#include <functional>
#include <utility>

#include <absl/container/btree_map.h>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

namespace tenure::backends::redis {

/// Calls at certain times, all by one timer. On the loop's thread. REQUIRES: outlives the loop's
/// last turn, or is cleared before.
class Alarms {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Alarms(boost::asio::io_context& loop) : timer_(loop) {}

  void call_at(Clock::time_point when, std::move_only_function<void()> call) {
    calls_.emplace(when, std::move(call));
    set();
  }
  void clear() {
    calls_.clear();
    timer_.cancel();
  }

 private:
  void set() {
    const auto first = calls_.begin()->first;
    if (first >= set_to_) {
      return;
    }
    set_to_ = first;
    timer_.expires_at(first);
    timer_.async_wait([this](const boost::system::error_code& error) {
      if (!error) {
        ring();
      }
    });
  }
  void ring() {
    set_to_ = Clock::time_point::max();
    const auto now = Clock::now();
    while (!calls_.empty() && calls_.begin()->first <= now) {
      auto call = std::move(calls_.begin()->second);
      calls_.erase(calls_.begin());
      call();
    }
    if (!calls_.empty()) {
      set();
    }
  }

  boost::asio::steady_timer timer_;
  Clock::time_point set_to_ = Clock::time_point::max();
  absl::btree_multimap<Clock::time_point, std::move_only_function<void()>> calls_;
};

}  // namespace tenure::backends::redis
