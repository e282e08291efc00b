#include "net/event_loop_runner.hpp"

#include <utility>

#include "sys/spin_wait.hpp"

namespace tenure::net {

EventLoopRunner::EventLoopRunner()
    : work_(loop_.get_executor()), dedicated_([this] { run_dedicated(); }) {}

void EventLoopRunner::wait(sys::WaitSlot& slot, sys::WaitSlot::Deadline deadline) {
  if (slot.is_signalled()) {
    return;
  }
  bool leads = lead_or_follow(slot);
  if (!leads) {
    slot.park(deadline);
    leads = slot.is_leading() || leave_queue(slot);
  }
  if (leads) {
    run_until(slot, deadline);
    leave(slot);
  }
}

bool EventLoopRunner::lead_or_follow(sys::WaitSlot& slot) {
  const sys::MutexGuard lock(mutex_);
  if (runner_ == Runner::none) {
    runner_ = Runner::waiter;
    slot.promote();
    return true;
  }
  followers_.push_back(slot);
  if (runner_ == Runner::dedicated && !is_yield_requested_.exchange(true)) {
    interrupt();
  }
  return false;
}

bool EventLoopRunner::leave_queue(sys::WaitSlot& slot) {
  const sys::MutexGuard lock(mutex_);
  followers_.remove(slot);
  return slot.is_leading();
}

void EventLoopRunner::run_until(const sys::WaitSlot& slot, sys::WaitSlot::Deadline deadline) {
  const auto poll = [&] {
    return loop_.poll_one() > 0 || slot.is_signalled() || sys::WaitSlot::has_passed(deadline);
  };
  while (!slot.is_signalled() && !sys::WaitSlot::has_passed(deadline)) {
    if (sys::poll_until(poll, busy_poll_.load(std::memory_order_relaxed))) {
      continue;
    }
    if (deadline) {
      loop_.run_one_until(*deadline);
    } else {
      loop_.run_one();
    }
  }
}

void EventLoopRunner::leave(sys::WaitSlot& slot) {
  {
    const sys::MutexGuard lock(mutex_);
    slot.demote();
    if (!std::exchange(is_flush_requested_, false)) {
      promote_next();
      return;
    }
  }
  flush_and_leave();
}

void EventLoopRunner::flush() {
  {
    const sys::MutexGuard lock(mutex_);
    if (runner_ != Runner::none) {
      is_flush_requested_ = runner_ == Runner::waiter;
      return;
    }
    runner_ = Runner::waiter;
  }
  flush_and_leave();
}

void EventLoopRunner::flush_and_leave() {
  for (int runs = 0;;) {
    while (runs < flush_handlers_max && loop_.poll_one() > 0) {
      ++runs;
    }
    const sys::MutexGuard lock(mutex_);
    const bool is_over_limit = runs >= flush_handlers_max;
    // Another thread may have posted and called flush() after the last poll.
    if (std::exchange(is_flush_requested_, false) && !is_over_limit) {
      continue;
    }
    has_ready_handlers_ = is_over_limit;
    promote_next();
    return;
  }
}

void EventLoopRunner::promote_next() {
  while (auto* const next = followers_.pop_front()) {
    // A signalled follower is about to return. It cannot have returned yet, since it takes the
    // mutex first.
    if (!next->is_signalled()) {
      runner_ = Runner::waiter;
      has_ready_handlers_ = false;
      next->promote();
      return;
    }
  }
  runner_ = Runner::none;
  ++terms_;
  if (is_dedicated_parked_ || background_ > 0 || has_ready_handlers_) {
    dedicated_wakeup_.notify_one();
  }
}

void EventLoopRunner::signal(sys::WaitSlot& slot) {
  if (slot.signal() && !runs_here()) {
    interrupt();
  }
}

void EventLoopRunner::begin_background() {
  {
    const sys::MutexGuard lock(mutex_);
    ++background_;
    if (runner_ != Runner::none) {
      return;
    }
  }
  dedicated_wakeup_.notify_one();
}

void EventLoopRunner::end_background() {
  const sys::MutexGuard lock(mutex_);
  --background_;
}

bool EventLoopRunner::set_busy_poll(std::chrono::microseconds limit) {
  busy_poll_ = limit;
  return true;
}

void EventLoopRunner::interrupt() {
  post([] {});
}

void EventLoopRunner::stop() {
  if (!dedicated_.joinable()) {
    return;
  }
  {
    const sys::MutexGuard lock(mutex_);
    is_stopping_ = true;
    is_yield_requested_ = true;
  }
  dedicated_wakeup_.notify_one();
  interrupt();
  dedicated_.join();
}

void EventLoopRunner::run_dedicated() {
  mutex_.lock();
  while (!is_stopping_) {
    const auto seen = terms_;
    if (background_ == 0 && !has_ready_handlers_) {
      dedicated_wakeup_.wait_for(mutex_, takeover_delay);
    }
    if (is_stopping_ || (terms_ != seen && background_ == 0 && !has_ready_handlers_)) {
      continue;
    }
    if (runner_ == Runner::waiter) {
      is_dedicated_parked_ = true;
      dedicated_wakeup_.wait(mutex_);
      is_dedicated_parked_ = false;
      continue;
    }
    runner_ = Runner::dedicated;
    has_ready_handlers_ = false;
    is_yield_requested_ = false;
    mutex_.unlock();
    while (!is_yield_requested_) {
      loop_.run_one();
    }
    mutex_.lock();
    promote_next();
  }
  mutex_.unlock();
}

}  // namespace tenure::net
