#pragma once

#include <chrono>
#include <functional>
#include <thread>

#include <absl/container/btree_map.h>

#include "sys/mutex.hpp"

namespace tenure::backends::zookeeper {

/// A thread for what has its time and for what takes its time: opening and closing sessions, which
/// asks for addresses and waits for threads. Thread safe.
class Chores {
 public:
  using Clock = std::chrono::steady_clock;
  using Job = std::move_only_function<void()>;

  Chores() : thread_([this] { run(); }) {}
  Chores(const Chores&) = delete;
  Chores& operator=(const Chores&) = delete;
  ~Chores() { stop(); }

  /// Jobs of one time are done in the order they came.
  void at(Clock::time_point when, Job job);
  void soon(Job job) { at(Clock::time_point::min(), std::move(job)); }

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
