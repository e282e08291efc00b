#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tenure/error.hpp>

#include "server/auth/access.hpp"

namespace tenure::server::http {

enum class Method : std::uint8_t { get, post };

/// Client of a request, as known from the connection and the headers.
/// Plain data, so that the rules of request_rights.hpp are testable without a socket. Headers are
/// claims of the client: they can restrict a request, but only a credential permits one.
struct ClientInfo {
  std::string address{};           ///< Address of the peer.
  bool is_local = false;           ///< The peer address is a loopback address.
  bool is_forwarded = false;       ///< A header shows that a proxy forwarded the request.
  std::string host{};              ///< Host header.
  std::string origin{};            ///< Origin header of a browser.
  std::string fetch_site{};        ///< Sec-Fetch-Site header: same-origin, cross-site, …
  bool has_intent_header = false;  ///< Tenure-Intent header, which a page of another origin cannot
                                   ///< send (CSRF protection).
  bool wants_html = false;         ///< The Accept header includes text/html, as from a browser.
  std::string authorization{};     ///< Authorization header.
  std::string session{};           ///< Secret in the login cookie.
  bool is_encrypted = false;       ///< TLS terminates at this server.
  bool has_secret = false;  ///< The request carries the server secret, or a login made with it.
  std::vector<std::string> certificate{};  ///< Names in the verified client certificate.
};

/// Hook of a request that waits for its response. HTTP thread only.
/// A handler sets the fields before it returns from Router::serve(); later changes are not seen.
struct DisconnectHook {
  std::function<void()> on_disconnect{};  ///< Called if the client disconnects before the response.
  std::chrono::milliseconds wait_max{};   ///< Wait allowed in addition to the usual response time.
};

/// Parsed HTTP request. Independent of Beast, whose headers take long to compile.
struct Request {
  std::string path{};            ///< Decoded path; starts with '/', may contain any bytes.
  std::string path_parameter{};  ///< Lock name or lease id in the path; set by Router::serve().
  std::map<std::string, std::string, std::less<>> query{};
  std::string last_event_id{};  ///< Last-Event-ID header of an event stream.
  std::string body{};
  Method method = Method::get;
  ClientInfo client{};
  /// Rights of the client; set by Router::admit().
  auth::Access access = auth::Access::unrestricted();
  std::shared_ptr<DisconnectHook>
      disconnect_hook{};  ///< Hook for handlers that wait; null: disconnects are not reported.

  /// The value of a parameter, or nothing.
  [[nodiscard]] std::optional<std::string_view> parameter(std::string_view name) const;
};

/// Parses a target such as `/v1/locks/a%2Fb?limit=3`. '+' in the query is a space.
/// Rejects invalid escapes, duplicate parameters and more than 32 of them: with duplicates, a proxy
/// and this server could read different values.
[[nodiscard]] Result<Request> parse_target(std::string_view target);

/// Value of a cookie in a Cookie header; empty: not present.
/// The result refers to `field`.
[[nodiscard]] std::string_view cookie_in(std::string_view field, std::string_view name);

/// Whether the Host header is allowed: an IP address, `localhost`, no header, or a name in
/// `allowed` ("a.example,b.example", or "*"). Prevents DNS rebinding, in which a foreign page
/// resolves its own name to our address to read our responses.
[[nodiscard]] bool is_allowed_host(std::string_view host, std::string_view allowed);

struct Response {
  unsigned status = 200;
  std::string content_type = "application/json";
  std::string body{};
  std::vector<std::pair<std::string, std::string>> fields{};
};

/// Called once, from any thread.
/// Move-only: a response is sent exactly once.
using Reply = std::move_only_function<void(Response)>;

/// Error response in the format of RFC 9457 (problem details).
[[nodiscard]] Response problem(unsigned status, std::string_view title, std::string_view detail);
/// Error response for an error of the store, with its code.
[[nodiscard]] Response error_response(const Error& error);

}  // namespace tenure::server::http
