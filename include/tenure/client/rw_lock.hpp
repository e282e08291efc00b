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

/// Distributed reader-writer lock: many readers or one writer. Fair to both: a waiting writer bars
/// later readers, and the readers behind it enter together after it, so neither starves. Members
/// are named as in std::shared_timed_mutex. A Mutex of the same name is the exclusive side.
///
/// A handle: copies refer to the same lock. Thread safe.
class RwLock {
 public:
  /// Acquire in exclusive mode, as Mutex::lock() and its forms.
  [[nodiscard]] Result<Guard> lock(std::stop_token cancel = {}) const;
  [[nodiscard]] Result<Guard> try_lock() const;
  [[nodiscard]] Result<Guard> try_lock(Attempts attempts, std::stop_token cancel = {}) const;
  template <class Rep, class Period>
  [[nodiscard]] Result<Guard> try_lock_for(const std::chrono::duration<Rep, Period>& timeout,
                                           std::stop_token cancel = {}) const {
    return lock_within(detail::to_nanoseconds(timeout), std::move(cancel));
  }
  template <class Clock, class Duration>
  [[nodiscard]] Result<Guard> try_lock_until(
      const std::chrono::time_point<Clock, Duration>& deadline, std::stop_token cancel = {}) const {
    return lock_within(detail::time_until(deadline), std::move(cancel));
  }
  [[nodiscard]] Awaitable<Guard> lock_async(std::stop_token cancel = {}) const;

  /// Acquire in shared mode, as Mutex::lock() and its forms.
  [[nodiscard]] Result<SharedGuard> lock_shared(std::stop_token cancel = {}) const;
  [[nodiscard]] Result<SharedGuard> try_lock_shared() const;
  [[nodiscard]] Result<SharedGuard> try_lock_shared(Attempts attempts,
                                                    std::stop_token cancel = {}) const;
  template <class Rep, class Period>
  [[nodiscard]] Result<SharedGuard> try_lock_shared_for(
      const std::chrono::duration<Rep, Period>& timeout, std::stop_token cancel = {}) const {
    return lock_shared_within(detail::to_nanoseconds(timeout), std::move(cancel));
  }
  template <class Clock, class Duration>
  [[nodiscard]] Result<SharedGuard> try_lock_shared_until(
      const std::chrono::time_point<Clock, Duration>& deadline, std::stop_token cancel = {}) const {
    return lock_shared_within(detail::time_until(deadline), std::move(cancel));
  }
  [[nodiscard]] Awaitable<SharedGuard> lock_shared_async(std::stop_token cancel = {}) const;

  /// Upgrades a shared hold to an exclusive one without releasing it: waits, ahead of the wait
  /// queue, until the other readers have released. No writer enters in between. On success the
  /// returned guard replaces `share`; on failure `share` is unchanged. Two concurrent upgrades
  /// would wait for each other, so the second one fails with Errc::deadlock and has to release.
  [[nodiscard]] Result<Guard> upgrade(SharedGuard& share, std::stop_token cancel = {}) const;

  /// Downgrades an exclusive hold to a shared one without waiting: same token, same lease, and no
  /// writer enters in between. Readers enter beside it unless they wait behind a writer. On success
  /// the returned guard replaces `guard`; on failure `guard` is unchanged or lost. Succeeds also
  /// without a reply in time, because the shared hold is weaker than what the service knows;
  /// readers then enter when the request reaches the service. Not with Reentry::counted, where
  /// other guards rely on exclusive access.
  [[nodiscard]] Result<SharedGuard> downgrade(Guard& guard) const;

  /// Full name of the lock, with ConnectOptions::key_prefix.
  [[nodiscard]] std::string_view name() const noexcept;

 private:
  friend struct detail::Factory;
  RwLock(std::shared_ptr<const detail::LockSpec> exclusive,
         std::shared_ptr<const detail::LockSpec> shared) noexcept;

  [[nodiscard]] Result<Guard> lock_within(std::chrono::nanoseconds timeout,
                                          std::stop_token cancel) const;
  [[nodiscard]] Result<SharedGuard> lock_shared_within(std::chrono::nanoseconds timeout,
                                                       std::stop_token cancel) const;

  std::shared_ptr<const detail::LockSpec> exclusive_;
  std::shared_ptr<const detail::LockSpec> shared_;
};

}  // namespace tenure
