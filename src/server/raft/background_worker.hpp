#pragma once

#include <deque>
#include <functional>
#include <thread>

#include "sys/mutex.hpp"

namespace tenure::server::raft {

/// A thread for what takes long and nobody waits for, one after the other; it begins with the
/// first. Nothing is begun once this is being destroyed.
class BackgroundWorker {
 public:
  BackgroundWorker() = default;
  ~BackgroundWorker();
  BackgroundWorker(const BackgroundWorker&) = delete;
  BackgroundWorker& operator=(const BackgroundWorker&) = delete;

  /// REQUIRES: always on the same thread.
  void add(std::move_only_function<void()> task);

 private:
  void run();

  sys::Mutex mutex_;  ///< Guards: the rest, but for the thread.
  sys::Signal changed_;
  std::deque<std::move_only_function<void()>> waiting_ TENURE_GUARDED_BY(mutex_);
  bool is_stopping_ TENURE_GUARDED_BY(mutex_) = false;
  std::jthread thread_;  ///< Last: it uses everything above.
};

}  // namespace tenure::server::raft
