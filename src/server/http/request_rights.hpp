#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/auth/access.hpp"
#include "server/config/config.hpp"
#include "server/http/message.hpp"

/// Rights to make changes over HTTP. With users, the policy decides. Without users, a request must
/// come from this machine and carry the server secret (secret.hpp).
namespace tenure::server::http {

/// Settings listen.http_force and listen.http_lock.
/// These settings limit every client: `off` also applies to users with the admin right.
struct ChangePolicy {
  HttpForce force = HttpForce::loopback;
  HttpLock lock = HttpLock::loopback;
};

struct RequestRights {
  bool may_force = false;       ///< May force-release locks; with users: at least some locks.
  std::string force_reason{};   ///< Human-readable reason for may_force.
  bool may_lock = false;        ///< May acquire and release locks; with users: at least some locks.
  std::string lock_reason{};    ///< Human-readable reason for may_lock.
  bool may_administer = false;  ///< May change members and leadership, and reload.
  std::string administer_reason{};  ///< Human-readable reason for may_administer.
  bool has_users = false;           ///< The server has users, so changes require a login.
  std::string user{};               ///< Authenticated user; empty: none.
  std::vector<auth::Rule> rules{};  ///< Rules of the user.
  bool needs_secret = false;  ///< The server secret would permit force-release and administration.
  bool lock_needs_secret = false;  ///< The server secret would permit acquire and release.
};
/// Rights for display and for requests without users. It does not decide about single names: with
/// users the caller also checks the permission for the name.
[[nodiscard]] RequestRights rights_of(const ClientInfo& client, const ChangePolicy& policy,
                                      const auth::Access& access = auth::Access::unrestricted());

/// Reason to treat the request as cross-site request forgery (CSRF); nullopt: accepted. Called
/// before anything is changed.
/// The intent header is required; the other headers are checked if the client sends them.
[[nodiscard]] std::optional<std::string_view> csrf_error(const ClientInfo& client);

}  // namespace tenure::server::http
