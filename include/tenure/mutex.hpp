#pragma once

#include <chrono>
#include <memory>
#include <stop_token>
#include <string_view>

#include <tenure/acquiring.hpp>
#include <tenure/error.hpp>
#include <tenure/guard.hpp>
#include <tenure/options.hpp>

namespace tenure {

/// A named lock that one owner at a time holds, across threads, processes and machines.
///
///                | lock()                      | guard.unlock() | lease ends
///  --------------+-----------------------------+----------------+-------------------
///  free          | held, next token            | not_held       | –
///  held by us    | waits (see Lease, Reentry)  | free           | free, lost() fires
///  held by other | waits in arrival order      | not_held       | free
///
/// Deliberately not a std Lockable: lock() returns the guard and there is no unlock() here, so that
/// std::lock_guard<tenure::Mutex> does not compile instead of dropping the guard at once. See
/// StdLockable.
///
/// A handle: copies are the same lock. Thread safe.
class Mutex {
 public:
  /// By Client::mutex() and Client::all_of().
  explicit Mutex(std::shared_ptr<const detail::LockSpec> spec) noexcept;

  /// Waits until the lock is ours, LockOptions::max_wait is over or `cancel` fires.
  [[nodiscard]] Result<Guard> lock(std::stop_token cancel = {}) const;

  /// Asks once. Errc::would_block if somebody else holds it or waits for it.
  [[nodiscard]] Result<Guard> try_lock() const;

  /// Asks up to `attempts.count` times. Errc::would_block if none succeeds.
  [[nodiscard]] Result<Guard> try_lock(Attempts attempts, std::stop_token cancel = {}) const;

  /// Waits at most this long. Errc::timed_out leaves no trace in the queue; zero asks once.
  [[nodiscard]] Result<Guard> try_lock_for(std::chrono::nanoseconds patience,
                                           std::stop_token cancel = {}) const;
  [[nodiscard]] Result<Guard> try_lock_until(std::chrono::steady_clock::time_point deadline,
                                             std::stop_token cancel = {}) const;

  /// lock() for coroutines.
  [[nodiscard]] Acquiring<Guard> lock_async(std::stop_token cancel = {}) const;

  /// As the service knows it, prefix included.
  [[nodiscard]] std::string_view name() const noexcept;

 private:
  std::shared_ptr<const detail::LockSpec> spec_;
};

}  // namespace tenure
