#pragma once

#include <condition_variable>
#include <mutex>

#include "sys/thread_safety.hpp"

namespace tenure::sys {

/// std::mutex with annotations for clang's thread safety analysis. Blocks in the kernel; use Latch
/// for critical sections of nanoseconds.
class TENURE_CAPABILITY("mutex") Mutex {
 public:
  void lock() TENURE_ACQUIRE() { mutex_.lock(); }
  void unlock() TENURE_RELEASE() { mutex_.unlock(); }

 private:
  friend class Signal;
  std::mutex mutex_;
};

/// Scoped guard of a mutex.
class TENURE_SCOPED_CAPABILITY MutexGuard {
 public:
  explicit MutexGuard(Mutex& mutex) TENURE_ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  MutexGuard(const MutexGuard&) = delete;
  MutexGuard& operator=(const MutexGuard&) = delete;
  ~MutexGuard() TENURE_RELEASE() { mutex_.unlock(); }

 private:
  Mutex& mutex_;
};

/// Condition variable for Mutex. Waits may return spuriously, so call them in a loop.
class Signal {
 public:
  void wait(Mutex& mutex) TENURE_REQUIRES(mutex) {
    std::unique_lock lock(mutex.mutex_, std::adopt_lock);
    changed_.wait(lock);
    lock.release();
  }
  template <class Duration>
  void wait_for(Mutex& mutex, Duration longest) TENURE_REQUIRES(mutex) {
    std::unique_lock lock(mutex.mutex_, std::adopt_lock);
    changed_.wait_for(lock, longest);
    lock.release();
  }
  void notify_one() noexcept { changed_.notify_one(); }
  void notify_all() noexcept { changed_.notify_all(); }

 private:
  std::condition_variable changed_;
};

}  // namespace tenure::sys
