#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string_view>

#include <tenure/acquiring.hpp>
#include <tenure/error.hpp>
#include <tenure/guard.hpp>
#include <tenure/options.hpp>

namespace tenure {

/// A number of permits under one name, handed out in arrival order: nobody overtakes one who waits
/// for more of them. All who use it must name the same capacity, else Errc::invalid_argument.
/// Verbs are those of std::counting_semaphore; what comes back is the permit itself.
///
/// A handle: copies are the same semaphore. Thread safe.
class Semaphore {
 public:
  /// By Client::semaphore().
  explicit Semaphore(std::shared_ptr<const detail::LockSpec> spec) noexcept;

  /// Some permits, SemaphoreSize::taken_at_once of them. Otherwise as Mutex::lock() and its forms.
  [[nodiscard]] Result<Permit> acquire(std::stop_token cancel = {}) const;
  [[nodiscard]] Result<Permit> try_acquire() const;
  [[nodiscard]] Result<Permit> try_acquire(Attempts attempts, std::stop_token cancel = {}) const;
  [[nodiscard]] Result<Permit> try_acquire_for(std::chrono::nanoseconds patience,
                                               std::stop_token cancel = {}) const;
  [[nodiscard]] Result<Permit> try_acquire_until(std::chrono::steady_clock::time_point deadline,
                                                 std::stop_token cancel = {}) const;
  [[nodiscard]] Acquiring<Permit> acquire_async(std::stop_token cancel = {}) const;

  /// As the service knows it, prefix included.
  [[nodiscard]] std::string_view name() const noexcept;

 private:
  std::shared_ptr<const detail::LockSpec> spec_;
};

/// How many permits there are, and how many are taken at a time.
struct SemaphoreSize {
  std::uint32_t capacity = 1;       ///< How many there are; the same for all who use it.
  std::uint32_t taken_at_once = 1;  ///< How many one acquire() takes.
};

}  // namespace tenure
