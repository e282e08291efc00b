#include "backends/zookeeper/timer_thread.hpp"

#include <algorithm>
#include <utility>

namespace tenure::backends::zookeeper {

void TimerThread::call_at(Clock::time_point when, Job job) {
  bool is_first = false;
  {
    const sys::MutexGuard lock(mutex_);
    const auto it = jobs_.emplace(when, std::move(job));
    is_first = it == jobs_.begin();
  }
  // A later job does not change the time of the next wake-up.
  if (is_first) {
    changed_.notify_one();
  }
}

void TimerThread::stop() {
  if (!thread_.joinable()) {
    return;
  }
  {
    const sys::MutexGuard lock(mutex_);
    is_stopping_ = true;
  }
  changed_.notify_one();
  thread_.join();
  decltype(jobs_) dropped;
  const sys::MutexGuard lock(mutex_);
  dropped.swap(jobs_);
}

void TimerThread::run() {
  constexpr std::chrono::hours long_time{1};
  mutex_.lock();
  while (!is_stopping_) {
    const auto now = Clock::now();
    if (jobs_.empty() || jobs_.begin()->first > now) {
      const auto pause = jobs_.empty() ? Clock::duration(long_time) : jobs_.begin()->first - now;
      changed_.wait_for(mutex_, std::min<Clock::duration>(pause, long_time));
      continue;
    }
    auto job = std::move(jobs_.begin()->second);
    jobs_.erase(jobs_.begin());
    mutex_.unlock();
    job();
    job = nullptr;
    mutex_.lock();
  }
  mutex_.unlock();
}

}  // namespace tenure::backends::zookeeper
