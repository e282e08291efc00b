#pragma once

#include <chrono>
#include <functional>
#include <thread>

#include <absl/container/btree_map.h>

#include "sys/mutex.hpp"

namespace tenure::backends::zookeeper {

/// A thread for what has its time and for what takes its time: opening and closing sessions, which
/// asks for addresses and waits for threads. Thread safe.
class TimerThread {
 public:
  using Clock = std::chrono::steady_clock;
  using Job = std::move_only_function<void()>;

  TimerThread() : thread_([this] { run(); }) {}
  TimerThread(const TimerThread&) = delete;
  TimerThread& operator=(const TimerThread&) = delete;
  ~TimerThread() { stop(); }

  /// Jobs of one time are done in the order they came.
  void call_at(Clock::time_point when, Job job);
  void call_soon(Job job) { call_at(Clock::time_point::min(), std::move(job)); }

  /// When the job that runs is done; the others are dropped, on this thread. Once or more.
  void stop();

 private:
  void run();

  sys::Mutex mutex_;
  sys::Signal changed_;
  absl::btree_multimap<Clock::time_point, Job> jobs_ TENURE_GUARDED_BY(mutex_);
  bool is_stopping_ TENURE_GUARDED_BY(mutex_) = false;
  std::thread thread_;  ///< Last: uses all the rest.
};

}  // namespace tenure::backends::zookeeper
