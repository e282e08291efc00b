#pragma once

#include <string>
#include <string_view>
#include <utility>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/post.hpp>

#include <tenure/error.hpp>

#include "core/item.hpp"
#include "server/auth/authorizer.hpp"
#include "server/http/message.hpp"
#include "sys/json_writer.hpp"

/// Helpers shared by the handlers of Router and LockHandlers.
namespace tenure::server::http {

[[nodiscard]] inline Response text(unsigned status, std::string body) {
  return {.status = status, .content_type = "text/plain; charset=utf-8", .body = std::move(body)};
}

[[nodiscard]] inline Response json(std::string body) {
  return {.body = std::move(body)};
}

/// Response 200 with the object whose fields `write` adds.
template <class Write>
[[nodiscard]] Response json_object(Write write) {
  sys::JsonWriter out;
  out.object([&] { write(out); });
  return json(out.take() + '\n');
}

/// Reply that can be called on any thread: it calls `reply` on the thread of the executor.
[[nodiscard]] inline Reply reply_on(boost::asio::any_io_executor executor, Reply reply) {
  return [executor = std::move(executor), reply = std::move(reply)](Response response) mutable {
    boost::asio::post(executor,
                      [reply = std::move(reply), response = std::move(response)]() mutable {
                        reply(std::move(response));
                      });
  };
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
