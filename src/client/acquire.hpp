#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>

#include <tenure/client/options.hpp>
#include <tenure/error.hpp>

#include "backends/backend.hpp"
#include "client/hold.hpp"
#include "client/lock_spec.hpp"

/// All forms of acquire, shared by all kinds of locks.
namespace tenure::detail {

using Acquired = Result<std::shared_ptr<Hold>>;
using Deadline = std::chrono::steady_clock::time_point;

/// Limits of one wait.
struct WaitLimits {
  /// Whether to enter the wait queue.
  backends::Queue queue = backends::Queue::wait;
  /// End of the wait; none: wait without limit.
  std::optional<Deadline> deadline{};
  /// Cancellation by the user.
  std::stop_token cancel{};
};

/// Acquires and blocks until the outcome is known. Errors: `timed_out` and `cancelled` by the
/// limits, `would_block` with Queue::skip, and `unavailable` if the service confirms neither a
/// grant nor the cancellation. A late grant is then released.
[[nodiscard]] Acquired acquire(const LockSpec& spec, const WaitLimits& wait);
/// Polls: several attempts with Queue::skip and a delay with jitter between them. Unlike a wait it
/// has no place in the queue, so it may starve. `would_block` after the last attempt.
[[nodiscard]] Acquired acquire(const LockSpec& spec, Attempts attempts,
                               const std::stop_token& cancel);

/// Returns the outcome at once, or calls `done` later on the callback thread.
[[nodiscard]] std::optional<Acquired> acquire_async(std::shared_ptr<const LockSpec> spec,
                                                    const std::stop_token& cancel,
                                                    std::move_only_function<void(Acquired)> done);

/// Upgrades a shared hold, which gets a new token. REQUIRES: `exclusive` asks for the same
/// name with SelfConflict::reenter.
[[nodiscard]] Result<void> upgrade(const LockSpec& exclusive, const std::shared_ptr<Hold>& hold,
                                   const WaitLimits& wait);

/// Limits of lock(): LockOptions::max_wait.
[[nodiscard]] WaitLimits within_max_wait(const LockSpec& spec, std::stop_token cancel);
/// Limits with a timeout; zero or less tries once.
[[nodiscard]] WaitLimits within(std::chrono::nanoseconds timeout, std::stop_token cancel);

}  // namespace tenure::detail
