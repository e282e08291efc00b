#pragma once

#include <chrono>
#include <memory>
#include <optional>

#include <tenure/client/client.hpp>

#include "cli/acquire.hpp"
#include "cli/signals.hpp"

namespace tenure::cli {

/// Outcome of an acquire: a held lock, or the exit code.
struct HoldAttempt {
  std::optional<Client> client{};  ///< Outlives the handle.
  /// The lock; null if it was not acquired, and `exit_code` is the exit code then.
  std::unique_ptr<HeldLock> handle{};
  std::chrono::milliseconds waited{};  ///< From the start to the grant or the failure.
  bool is_busy = false;                ///< Another owner has the lock.
  int exit_code = 0;
};

/// Connects and acquires; a termination signal cancels the wait. Prints errors.
[[nodiscard]] HoldAttempt hold(const Arguments& arguments, const AcquireSpec& spec,
                               const Signals& signals);

}  // namespace tenure::cli
