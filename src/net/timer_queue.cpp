#include "net/timer_queue.hpp"

#include <utility>

#include <boost/system/error_code.hpp>

namespace tenure::net {

void TimerQueue::call_at(Clock::time_point when, Callback callback) {
  callbacks_.emplace(when, std::move(callback));
  arm();
}

void TimerQueue::clear() {
  armed_for_ = Clock::time_point::max();
  timer_.cancel();
  // A callback that owns an object with a reference to the queue may call it as it is destroyed.
  std::exchange(callbacks_, {}).clear();
}

void TimerQueue::arm() {
  const auto first = callbacks_.begin()->first;
  if (first >= armed_for_) {
    return;
  }
  armed_for_ = first;
  timer_.expires_at(first);
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) {
      run_due();
    }
  });
}

void TimerQueue::run_due() {
  armed_for_ = Clock::time_point::max();
  const auto now = Clock::now();
  while (!callbacks_.empty() && callbacks_.begin()->first <= now) {
    auto callback = std::move(callbacks_.begin()->second);
    callbacks_.erase(callbacks_.begin());
    callback();
  }
  if (!callbacks_.empty()) {
    arm();
  }
}

}  // namespace tenure::net
