#pragma once

#include <chrono>
#include <memory>
#include <stop_token>
#include <string_view>
#include <utility>

#include <tenure/client/awaitable.hpp>
#include <tenure/client/guard.hpp>
#include <tenure/client/options.hpp>
#include <tenure/error.hpp>
#include <tenure/timeout.hpp>

namespace tenure {

/// Distributed mutex: a named lock that at most one owner holds, across threads, processes and
/// machines. Requests are granted in arrival order.
///
///                | lock()                      | guard.unlock() | lease ends
///  --------------+-----------------------------+----------------+-------------------
///  free          | held, next token            | not_held       | –
///  held by us    | waits (see Lease, Reentry)  | free           | free, lost() fires
///  held by other | waits in arrival order      | not_held       | free
///
/// Not a std Lockable: lock() returns the guard, and there is no unlock() here. So
/// std::lock_guard<tenure::Mutex>, which would discard the guard, does not compile. See
/// StdLockable.
///
/// A handle: copies refer to the same lock. Thread safe.
class Mutex {
 public:
  /// Waits until the lock is granted, LockOptions::max_wait expires or `cancel` is triggered.
  [[nodiscard]] Result<Guard> lock(std::stop_token cancel = {}) const;

  /// Tries once. Errc::would_block if another owner holds the lock or waits for it.
  [[nodiscard]] Result<Guard> try_lock() const;

  /// Tries up to `attempts.count` times. Errc::would_block if no attempt succeeds.
  [[nodiscard]] Result<Guard> try_lock(Attempts attempts, std::stop_token cancel = {}) const;

  /// Waits at most `timeout`. After Errc::timed_out the request has left the wait queue. A timeout
  /// of zero or less tries once.
  template <class Rep, class Period>
  [[nodiscard]] Result<Guard> try_lock_for(const std::chrono::duration<Rep, Period>& timeout,
                                           std::stop_token cancel = {}) const {
    return lock_within(detail::to_nanoseconds(timeout), std::move(cancel));
  }
  /// The same with a deadline, which is converted to the steady clock at the call.
  template <class Clock, class Duration>
  [[nodiscard]] Result<Guard> try_lock_until(
      const std::chrono::time_point<Clock, Duration>& deadline, std::stop_token cancel = {}) const {
    return lock_within(detail::time_until(deadline), std::move(cancel));
  }

  /// lock() for coroutines.
  [[nodiscard]] Awaitable<Guard> lock_async(std::stop_token cancel = {}) const;

  /// Full name of the lock, with ConnectOptions::key_prefix.
  [[nodiscard]] std::string_view name() const noexcept;

 private:
  friend struct detail::Factory;
  explicit Mutex(std::shared_ptr<const detail::LockSpec> spec) noexcept;

  [[nodiscard]] Result<Guard> lock_within(std::chrono::nanoseconds timeout,
                                          std::stop_token cancel) const;

  std::shared_ptr<const detail::LockSpec> spec_;
};

}  // namespace tenure
