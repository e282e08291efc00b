#pragma once

#include <chrono>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include <tenure/client/client.hpp>

#include "cli/arguments.hpp"

namespace tenure::cli {

/// Locks to acquire, as the command line specifies them.
struct AcquireSpec {
  /// Names to acquire, all or none.
  std::vector<std::string> names{};
  bool is_shared = false;
  std::optional<SemaphoreSize> permits{};  ///< Set for a semaphore, which has one name.
  std::optional<std::chrono::milliseconds>
      wait{};  ///< Wait timeout; none: wait forever; 0: do not wait.
  std::chrono::milliseconds ttl = LockOptions{}.ttl;
  std::string metadata{};
};

/// Parses and validates the options of run, lock and try. Contradicting options are errors, so that
/// a misread command line never acquires the wrong lock.
[[nodiscard]] Result<AcquireSpec> parse_acquire_spec(const Arguments& arguments);

/// Acquires and waits. Shows the holder and the queue position on stderr if that is a terminal. The
/// status line is erased before this function returns, so that it does not mix with the output of
/// the command.
[[nodiscard]] Result<LockHandle> acquire(const Client& client, const AcquireSpec& spec,
                                         const Arguments& arguments, std::stop_token cancel);

/// Concatenates the names with a separator.
[[nodiscard]] std::string joined(const std::vector<std::string>& names, std::string_view between);

}  // namespace tenure::cli
