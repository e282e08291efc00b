#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tenure/client/options.hpp>
#include <tenure/error.hpp>

#include "backends/backend.hpp"

namespace tenure::detail {

class Session;
class SharedLease;

/// Immutable specification of a lock object: what to acquire, how, and from which session. Shared
/// by its copies and its guards, all of which keep the session alive.
struct LockSpec {
  /// Session of the client that created the lock object.
  std::shared_ptr<Session> session;
  /// Request as the backend sees it, with full names.
  std::shared_ptr<const backends::AcquireSpec> acquire_spec;
  /// TTL of the lease of each hold; unused with an explicit lease.
  std::chrono::milliseconds ttl{};
  int renewals_per_ttl = 0;
  std::optional<std::chrono::milliseconds> max_wait{};
  /// Minimum time from the grant to the end of the hold in the service; 0: none.
  std::chrono::milliseconds hold_at_least{};
  std::shared_ptr<SharedLease> lease{};  ///< Explicit lease; null if each hold has its own.
  std::shared_ptr<const std::function<void(const AtRisk&)>> on_at_risk{};
  std::optional<Error> error{};  ///< Error of every acquire, such as an invalid name.
  std::string name{};            ///< Display name: the name, or all names.
};

/// Never fails: reports invalid names and options in LockSpec::error.
[[nodiscard]] std::shared_ptr<const LockSpec> make_spec(
    std::shared_ptr<Session> session, std::vector<backends::Item> items, LockOptions options,
    backends::LockKind kind = backends::LockKind::mutex);

/// Error of an invalid TTL, or std::nullopt.
[[nodiscard]] std::optional<Error> check_ttl(std::chrono::milliseconds ttl, int renewals_per_ttl,
                                             const backends::Limits& limits);

}  // namespace tenure::detail
