#pragma once

#include <chrono>
#include <functional>
#include <thread>

#include <absl/container/btree_map.h>

#include "sys/mutex.hpp"

namespace tenure::backends::zookeeper {

/// Timer thread, also used for blocking work: opening and closing sessions resolves host names and
/// joins threads of the C client, which must not happen on the strand. Thread safe.
class TimerThread {
 public:
  using Clock = std::chrono::steady_clock;
  using Job = std::move_only_function<void()>;

  TimerThread() : thread_([this] { run(); }) {}
  TimerThread(const TimerThread&) = delete;
  TimerThread& operator=(const TimerThread&) = delete;
  ~TimerThread() { stop(); }

  /// Runs `job` at `when`. Jobs with the same time run in call order.
  void call_at(Clock::time_point when, Job job);
  void call_soon(Job job) { call_at(Clock::time_point::min(), std::move(job)); }

  /// Waits for the running job and drops the others on the calling thread. May be called
  /// repeatedly.
  void stop();

 private:
  /// Body of the thread: runs each job without the mutex when its time has come.
  void run();

  sys::Mutex mutex_;
  sys::Signal changed_;
  absl::btree_multimap<Clock::time_point, Job> jobs_ TENURE_GUARDED_BY(mutex_);
  bool is_stopping_ TENURE_GUARDED_BY(mutex_) = false;
  /// Declared last: uses every other member.
  std::thread thread_;
};

}  // namespace tenure::backends::zookeeper
