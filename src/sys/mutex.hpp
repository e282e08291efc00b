#pragma once

#include <mutex>

#include "sys/thread_safety.hpp"

namespace tenure::sys {

/// std::mutex that clang can check: libstdc++'s has no annotations.
class TENURE_CAPABILITY("mutex") Mutex {
 public:
  void lock() TENURE_ACQUIRE() { mutex_.lock(); }
  void unlock() TENURE_RELEASE() { mutex_.unlock(); }

 private:
  std::mutex mutex_;
};

/// std::lock_guard for it.
class TENURE_SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) TENURE_ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  ~MutexLock() TENURE_RELEASE() { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

}  // namespace tenure::sys
