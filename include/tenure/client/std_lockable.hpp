#pragma once

#include <utility>

#include <tenure/client/guard.hpp>
#include <tenure/client/mutex.hpp>
#include <tenure/error.hpp>

namespace tenure {

/// Adapter that makes a Mutex a std Lockable, for std::scoped_lock and std::unique_lock, also
/// together with local mutexes. Throws Exception if locking fails, because std::lock has no other
/// way to report it.
///
/// Thread safety: one thread at a time, because it contains the guard.
class StdLockable {
 public:
  /// Adapter for one scope of one thread.
  explicit StdLockable(Mutex mutex) : mutex_(std::move(mutex)) {}

  /// As the members of std::mutex.
  void lock() { guard_ = mutex_.lock().or_throw(); }
  [[nodiscard]] bool try_lock() {
    auto attempt = mutex_.try_lock();
    if (!attempt && attempt.error() == Errc::would_block) {
      return false;
    }
    guard_ = std::move(attempt).or_throw();
    return true;
  }
  /// Ignores errors, as std::unique_lock requires. Check guard() before, to learn of a loss.
  void unlock() { static_cast<void>(guard_.unlock()); }

  /// The hold while it is locked, for its token and lost().
  [[nodiscard]] const Guard& guard() const noexcept { return guard_; }

 private:
  Mutex mutex_;
  Guard guard_;
};

}  // namespace tenure
