#pragma once

#include <deque>
#include <functional>
#include <thread>

#include "sys/mutex.hpp"

namespace tenure::server::raft {

/// Background worker: a thread that runs long tasks without a waiting caller, in FIFO order. The
/// thread starts with the first task. The destructor finishes the running task and drops the queued
/// ones.
class BackgroundWorker {
 public:
  BackgroundWorker() = default;
  ~BackgroundWorker();
  BackgroundWorker(const BackgroundWorker&) = delete;
  BackgroundWorker& operator=(const BackgroundWorker&) = delete;

  /// Queues a task. REQUIRES: always called on the same thread, which starts the worker.
  void add(std::move_only_function<void()> task);

 private:
  void run();

  sys::Mutex mutex_;  ///< Guards: the queue and the stop flag.
  sys::Signal changed_;
  std::deque<std::move_only_function<void()>> waiting_ TENURE_GUARDED_BY(mutex_);
  bool is_stopping_ TENURE_GUARDED_BY(mutex_) = false;
  std::jthread thread_;  ///< Declared last: it uses every other member.
};

}  // namespace tenure::server::raft
