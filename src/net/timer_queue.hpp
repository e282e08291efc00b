#pragma once

#include <chrono>
#include <functional>

#include <absl/container/btree_map.h>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

namespace tenure::net {

/// Timer queue: any number of timed callbacks on one timer of the event loop.
///
/// Guarantees
///   - A callback runs on the loop, not before its time; callbacks run in the order of their times.
///   - A callback may add callbacks, and may clear the queue.
///
/// Not thread safe. REQUIRES: the queue outlives the last run of the loop, or is cleared before.
class TimerQueue {
 public:
  using Clock = std::chrono::steady_clock;
  using Callback = std::move_only_function<void()>;

  explicit TimerQueue(boost::asio::io_context& loop) : timer_(loop) {}

  void call_at(Clock::time_point when, Callback callback);
  /// Drops all callbacks.
  void clear();

 private:
  /// Sets the timer to the earliest callback. REQUIRES: there is one.
  void arm();
  void run_due();

  boost::asio::steady_timer timer_;
  Clock::time_point armed_for_ = Clock::time_point::max();  ///< Max: the timer is not set.
  absl::btree_multimap<Clock::time_point, Callback> callbacks_;
};

}  // namespace tenure::net
