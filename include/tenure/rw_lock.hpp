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

/// Many readers or one writer. In strict order of arrival: a waiting writer bars later readers, and
/// the readers behind it enter together when it is done, so neither side starves. Members are named
/// as in std::shared_timed_mutex. A Mutex of the same name is its exclusive side.
///
/// A handle: copies are the same lock. Thread safe.
class RwLock {
 public:
  /// By Client::rw_lock() and Client::rw_all_of().
  RwLock(std::shared_ptr<const detail::LockSpec> exclusive,
         std::shared_ptr<const detail::LockSpec> shared) noexcept;

  /// To write: alone. Otherwise as Mutex::lock() and its forms.
  [[nodiscard]] Result<Guard> lock(std::stop_token cancel = {}) const;
  [[nodiscard]] Result<Guard> try_lock() const;
  [[nodiscard]] Result<Guard> try_lock(Attempts attempts, std::stop_token cancel = {}) const;
  [[nodiscard]] Result<Guard> try_lock_for(std::chrono::nanoseconds patience,
                                           std::stop_token cancel = {}) const;
  [[nodiscard]] Result<Guard> try_lock_until(std::chrono::steady_clock::time_point deadline,
                                             std::stop_token cancel = {}) const;
  [[nodiscard]] Acquiring<Guard> lock_async(std::stop_token cancel = {}) const;

  /// To read: beside other readers. Otherwise as Mutex::lock() and its forms.
  [[nodiscard]] Result<SharedGuard> lock_shared(std::stop_token cancel = {}) const;
  [[nodiscard]] Result<SharedGuard> try_lock_shared() const;
  [[nodiscard]] Result<SharedGuard> try_lock_shared(Attempts attempts,
                                                    std::stop_token cancel = {}) const;
  [[nodiscard]] Result<SharedGuard> try_lock_shared_for(std::chrono::nanoseconds patience,
                                                        std::stop_token cancel = {}) const;
  [[nodiscard]] Result<SharedGuard> try_lock_shared_until(
      std::chrono::steady_clock::time_point deadline, std::stop_token cancel = {}) const;
  [[nodiscard]] Acquiring<SharedGuard> lock_shared_async(std::stop_token cancel = {}) const;

  /// Turns a share into exclusive possession without letting go of it: waits, before everybody in
  /// the queue, until the other readers are gone. Nobody writes in between. On success the guard
  /// replaces `share`; on failure the share is as it was. Two who upgrade wait for each other, so
  /// the second gets Errc::deadlock and must let go.
  [[nodiscard]] Result<Guard> upgrade(SharedGuard& share, std::stop_token cancel = {}) const;

  /// Turns exclusive possession into a share, at once: same token, same lease, and nobody writes in
  /// between. Readers may enter beside it, as far as they are not behind a writer who waits. On
  /// success the share replaces `guard`; on failure the guard is as it was, or lost. If nobody
  /// answers in time the share is there all the same, since nothing less is held, and readers enter
  /// when the service hears of it. Not with Reentry::counted: other guards of the hold rely on
  /// being alone.
  [[nodiscard]] Result<SharedGuard> downgrade(Guard& guard) const;

  /// As the service knows it, prefix included.
  [[nodiscard]] std::string_view name() const noexcept;

 private:
  std::shared_ptr<const detail::LockSpec> exclusive_;
  std::shared_ptr<const detail::LockSpec> shared_;
};

}  // namespace tenure
