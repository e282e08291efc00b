#pragma once

#include <expected>
#include <utility>

#include <tenure/error.hpp>
#include <tenure/guard.hpp>
#include <tenure/mutex.hpp>

namespace tenure {

/// Lets std::scoped_lock and std::unique_lock take a Mutex, together with local ones if need be.
/// Failure to lock throws std::bad_expected_access<Error>, because std has no other way to say it.
///
/// Thread safety: one thread at a time, as it keeps the guard.
class StdLockable {
 public:
  /// For one scope of one thread: it keeps the guard.
  explicit StdLockable(Mutex mutex) : mutex_(std::move(mutex)) {}

  /// As std::mutex.
  void lock() { guard_ = mutex_.lock().value(); }
  [[nodiscard]] bool try_lock() {
    auto attempt = mutex_.try_lock();
    if (attempt) {
      guard_ = *std::move(attempt);
      return true;
    }
    if (attempt.error() == Errc::would_block) {
      return false;
    }
    throw std::bad_expected_access<Error>(std::move(attempt).error());
  }
  /// Loss shows in guard(), before; std does not want to hear of it here.
  void unlock() { static_cast<void>(guard_.unlock()); }

  /// The possession, while it is locked: its token, its lost().
  [[nodiscard]] const Guard& guard() const noexcept { return guard_; }

 private:
  Mutex mutex_;
  Guard guard_;
};

}  // namespace tenure
