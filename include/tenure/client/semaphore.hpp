#pragma once

#include <chrono>
#include <cstdint>
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

/// Distributed counting semaphore: a number of permits under one name, granted in arrival order. A
/// request for many permits is not overtaken by requests for fewer. All users must name the same
/// capacity, else Errc::invalid_argument. Members are named as in std::counting_semaphore;
/// acquire() returns the permit.
///
/// A handle: copies refer to the same semaphore. Thread safe.
class Semaphore {
 public:
  /// Acquire SemaphoreSize::taken_at_once permits, as Mutex::lock() and its forms.
  [[nodiscard]] Result<Permit> acquire(std::stop_token cancel = {}) const;
  [[nodiscard]] Result<Permit> try_acquire() const;
  [[nodiscard]] Result<Permit> try_acquire(Attempts attempts, std::stop_token cancel = {}) const;
  template <class Rep, class Period>
  [[nodiscard]] Result<Permit> try_acquire_for(const std::chrono::duration<Rep, Period>& timeout,
                                               std::stop_token cancel = {}) const {
    return acquire_within(detail::to_nanoseconds(timeout), std::move(cancel));
  }
  template <class Clock, class Duration>
  [[nodiscard]] Result<Permit> try_acquire_until(
      const std::chrono::time_point<Clock, Duration>& deadline, std::stop_token cancel = {}) const {
    return acquire_within(detail::time_until(deadline), std::move(cancel));
  }
  [[nodiscard]] Awaitable<Permit> acquire_async(std::stop_token cancel = {}) const;

  /// Full name of the semaphore, with ConnectOptions::key_prefix.
  [[nodiscard]] std::string_view name() const noexcept;

 private:
  friend struct detail::Factory;
  explicit Semaphore(std::shared_ptr<const detail::LockSpec> spec) noexcept;

  [[nodiscard]] Result<Permit> acquire_within(std::chrono::nanoseconds timeout,
                                              std::stop_token cancel) const;

  std::shared_ptr<const detail::LockSpec> spec_;
};

/// Capacity of a semaphore, and number of permits per acquire().
struct SemaphoreSize {
  std::uint32_t capacity = 1;       ///< Number of permits; the same for all users.
  std::uint32_t taken_at_once = 1;  ///< Number of permits that one acquire() takes.
};

}  // namespace tenure
