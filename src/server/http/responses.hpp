#pragma once

#include <string>
#include <string_view>
#include <utility>

#include <tenure/error.hpp>

#include "core/item.hpp"
#include "server/auth/authorizer.hpp"
#include "server/http/message.hpp"

/// Helpers shared by the handlers of Router.
namespace tenure::server::http {

// Prefixes and suffixes of paths with a name or an id. A name may contain slashes and colons: only
// a suffix at the end of the path selects a route.
inline constexpr std::string_view lock_prefix = "/v1/locks/";
inline constexpr std::string_view lease_prefix = "/v1/leases/";
inline constexpr std::string_view member_prefix = "/v1/cluster/members/";
inline constexpr std::string_view remove_suffix = ":remove";
inline constexpr std::string_view force_suffix = ":force-release";
inline constexpr std::string_view acquire_suffix = ":acquire";
inline constexpr std::string_view release_suffix = ":release";
inline constexpr std::string_view extend_suffix = ":extend";
inline constexpr std::string_view renew_suffix = ":renew";
inline constexpr std::string_view revoke_suffix = ":revoke";

[[nodiscard]] inline Response text(unsigned status, std::string body) {
  return {.status = status, .content_type = "text/plain; charset=utf-8", .body = std::move(body)};
}

[[nodiscard]] inline Response json(std::string body) {
  return {.body = std::move(body)};
}

[[nodiscard]] inline Response not_found(std::string_view detail) {
  return problem(404, "Not Found", detail);
}

/// 405 for a method that the path does not support.
[[nodiscard]] inline Response not_allowed(const std::string& allowed) {
  auto response = problem(405, "Method Not Allowed", "allowed methods: " + allowed);
  response.fields.emplace_back("Allow", allowed);
  return response;
}

[[nodiscard]] inline Response forbidden(const Error& error) {
  return problem(403, "Forbidden", error.detail);
}

/// 401 for an unauthenticated client, 403 for an authenticated one.
/// RFC 9110 requires WWW-Authenticate with 401.
[[nodiscard]] inline Response error_response(const auth::AccessDenied& denial) {
  if (denial.kind == auth::AccessDenied::Kind::forbidden) {
    return forbidden(denial.error);
  }
  auto response = problem(401, "Unauthorized", denial.error.detail);
  response.fields.emplace_back("WWW-Authenticate", "Bearer realm=\"tenure\"");
  return response;
}

/// Parameter `kind` of the lock in the path.
[[nodiscard]] inline Result<core::ResourceKind> resource_kind(const Request& request) {
  const auto kind = request.parameter("kind").value_or("name");
  if (kind != "name" && kind != "space") {
    return fail(Errc::invalid_argument, "kind: expected name or space");
  }
  return kind == "space" ? core::ResourceKind::space : core::ResourceKind::name;
}

}  // namespace tenure::server::http
