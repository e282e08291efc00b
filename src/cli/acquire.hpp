#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include <tenure/client/client.hpp>

#include "cli/arguments.hpp"
#include "cli/held_lock.hpp"
#include "sys/json_writer.hpp"
#include "tenure/v1/item.pb.h"

namespace tenure::cli {

/// Locks to acquire, as the command line specifies them.
struct AcquireSpec {
  /// Names to acquire, all or none; a path or the name of a space.
  std::vector<std::string> names{};
  bool is_shared = false;
  std::string mode = "X";  ///< IS, IX, S, U, SIX or X.
  /// Locks that the client library does not offer: other modes than S and X, key ranges, paths.
  /// Empty: the library acquires the names.
  std::vector<v1::Item> items{};
  std::optional<LeaseId> lease{};  ///< Existing lease to acquire the items under.
  Fairness fairness = Fairness::queued;
  std::optional<SemaphoreSize> permits{};  ///< Set for a semaphore, which has one name.
  std::optional<std::chrono::milliseconds>
      wait{};  ///< Wait timeout; none: wait forever; 0: do not wait.
  std::chrono::milliseconds ttl = LockOptions{}.ttl;
  std::chrono::milliseconds hold_at_least{};         ///< As in LockOptions.
  std::optional<std::chrono::milliseconds> every{};  ///< Minimum time between two starts.
  std::string metadata{};
};

/// Names of the locks of a request, for messages: those of the items, leaf first, or the names.
[[nodiscard]] std::vector<std::string> lock_names(const AcquireSpec& spec);
/// Writes `names`, and `mode` or `permits` and `capacity`.
void write_fields(sys::JsonWriter& json, const AcquireSpec& spec);

/// Parses and validates the options of run, lock and try. Contradicting options are errors, so that
/// a misread command line never acquires the wrong lock.
[[nodiscard]] Result<AcquireSpec> parse_acquire_spec(const Arguments& arguments);

/// Acquires and waits. Shows the holder and the queue position on stderr if that is a terminal. The
/// status line is erased before this function returns, so that it does not mix with the output of
/// the command.
[[nodiscard]] Result<std::unique_ptr<HeldLock>> acquire(const Client& client,
                                                        const AcquireSpec& spec,
                                                        const Arguments& arguments,
                                                        std::stop_token cancel);

/// Concatenates the names with a separator.
[[nodiscard]] std::string joined(const std::vector<std::string>& names, std::string_view between);

}  // namespace tenure::cli
