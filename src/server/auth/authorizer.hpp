#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <tenure/error.hpp>

#include "server/auth/access.hpp"
#include "server/auth/denial_log_limiter.hpp"
#include "server/auth/policy.hpp"
#include "sys/mutex.hpp"

namespace tenure::server::auth {

/// Permission that a call, an operation or an HTTP route requires. The values up to `admin_global`
/// are checked before the handler runs, by Principal::authorize(); the others by the handler, which
/// knows the lock name or the lease.
enum class Permission : std::uint8_t {
  none,           ///< No authentication: health checks, login.
  authenticated,  ///< Any authenticated user.
  lock_any_name,  ///< `lock` on at least one prefix.
  read_global,    ///< `read` on the empty prefix: requests without a lock name.
  admin_global,   ///< `admin` on the empty prefix.
  read_names,     ///< Filters its reply by `read`; denied if nothing can remain.
  lock_names,     ///< `lock` on each name of the request.
  admin_name,     ///< `admin` on the name.
  own_lease,      ///< Ownership of the lease.
  per_operation,  ///< Checked for each operation of a stream.
};

/// Credentials of a request: none, the digest of a token, or the names in a client certificate.
using Credentials = std::variant<std::monostate, Digest, std::vector<std::string>>;

class Authorizer;

/// Result of a failed authorization.
struct AccessDenied {
  enum class Kind : std::uint8_t { unauthenticated, forbidden };
  Kind kind = Kind::forbidden;  ///< unauthenticated: retry with credentials; forbidden: the user
                                ///< lacks the right.
  Error error{.code = Errc::permission_denied};
};

/// Authenticated client of a call, a stream or an HTTP request. Re-evaluates its rights when the
/// policy has changed, so that a reload applies to open streams. Not thread safe.
class Principal {
 public:
  Principal(Authorizer& authorizer, Credentials credentials, std::string address);

  /// Rights under the policy in force. Valid until the next call of a function of this object.
  [[nodiscard]] const Access& access();
  /// Checks a permission. nullopt: granted. Denials are logged, rate-limited.
  [[nodiscard]] std::optional<AccessDenied> authorize(Permission permission);
  [[nodiscard]] std::optional<AccessDenied> authorize(Verb verb, std::string_view name);
  /// Whether a live lease of `client` belongs to another user. Users with `admin` on the empty
  /// prefix may use every lease. Replies must not reveal that a foreign lease exists.
  [[nodiscard]] bool is_foreign(std::string_view client, std::uint64_t lease);

 private:
  /// Records the denial; the detail distinguishes missing from unknown credentials.
  [[nodiscard]] AccessDenied unauthenticated();
  void record_denial(std::string_view verb, std::string_view name);

  Authorizer& authorizer_;
  Credentials credentials_;
  std::string address_;
  /// Version of the policy that access_ was computed from.
  std::uint64_t version_ = 0;
  Access access_;
};

/// Authenticates clients and holds the policy in force, which it loads from a file. Thread safe.
///
/// Readers take a shared_ptr to the policy under the mutex and work without it. The version is
/// atomic, so a principal detects a change without locking.
class Authorizer {
 public:
  /// Loads the policy. `invalid_argument`: the file is unreadable or invalid; the detail lists
  /// every error.
  [[nodiscard]] static Result<std::unique_ptr<Authorizer>> open(std::filesystem::path file);
  /// Starts with `rules`; reload() reads `file`.
  explicit Authorizer(Policy rules, std::filesystem::path file = {});

  /// Reloads the file. The new policy applies to all later requests, also on open streams. If the
  /// file is invalid, the previous policy stays in force and the failure is logged. Returns the
  /// number of users.
  Result<std::size_t> reload();
  /// Installs `rules` as the policy in force.
  void replace(Policy rules);

  /// Principal with these credentials. An invalid token is not replaced by a valid certificate.
  /// Outlived by this authorizer.
  [[nodiscard]] std::unique_ptr<Principal> authenticate(Credentials credentials,
                                                        std::string address) {
    return std::make_unique<Principal>(*this, std::move(credentials), std::move(address));
  }
  /// Credentials in an Authorization header; none if it is empty.
  [[nodiscard]] static Credentials credentials_from(std::string_view authorization);

  /// Version of the policy, never 0; grows with every change.
  [[nodiscard]] std::uint64_t version() const noexcept {
    return version_.load(std::memory_order_acquire);
  }
  [[nodiscard]] Access access_for(const Credentials& credentials) const;

  /// A denied request. `verb`: the denied action, or "identify" if the client is unauthenticated.
  struct DeniedRequest {
    std::string_view principal{};
    std::string_view verb{};
    std::string_view name{};
    std::string_view address{};
  };
  /// Counts every denial and logs it, rate-limited.
  void record_denial(const DeniedRequest& request);
  /// Called for each denial, logged or not. REQUIRES: set before the first request.
  void on_denied(std::function<void(std::string_view verb)> denied) { denied_ = std::move(denied); }

 private:
  /// Users file; empty: the policy is installed by replace() only.
  const std::filesystem::path file_;
  std::function<void(std::string_view)> denied_;
  std::atomic<std::uint64_t> version_ = 1;
  mutable sys::Mutex mutex_;
  std::shared_ptr<const Policy> rules_ TENURE_GUARDED_BY(mutex_);
  DenialLogLimiter log_limiter_ TENURE_GUARDED_BY(mutex_);
};

}  // namespace tenure::server::auth
