#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/auth/access.hpp"
#include "server/config/config.hpp"
#include "server/http/message.hpp"

/// Rights to change something over HTTP. With users, their rules decide. Without users, a request
/// must come from this machine and show the secret of the server (secret.hpp).
namespace tenure::server::http {

/// As it is configured.
struct RightsPolicy {
  HttpForce force = HttpForce::loopback;
  HttpLock lock = HttpLock::loopback;
};

struct Rights {
  bool may_force = false;           ///< Take locks from their holders; of users: some of them.
  std::string why{};                ///< For people.
  bool may_lock = false;            ///< Take locks, and give them back; of users: some of them.
  std::string why_lock{};           ///< Or why not; for people.
  bool has_users = false;           ///< One has to log in here.
  std::string user{};               ///< Who is logged in; empty: nobody.
  std::vector<auth::Rule> rules{};  ///< Of the user.
  bool needs_secret = false;        ///< With the secret of the server it may force.
};
[[nodiscard]] Rights rights_of(const Caller& caller, const RightsPolicy& policy,
                               const auth::Access& access = auth::Access::unrestricted());

/// Why this must be taken for a request that a page of somebody else made a browser send; nothing
/// if it is not. To be asked before anything is changed.
[[nodiscard]] std::optional<std::string_view> why_forged(const Caller& caller);

}  // namespace tenure::server::http
