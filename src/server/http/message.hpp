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

/// Who asks, as far as the connection and the head of the request tell.
struct Caller {
  std::string address{};      ///< The other end of the connection.
  bool is_local = false;      ///< It is on this machine.
  bool is_forwarded = false;  ///< A proxy asks for somebody else.
  std::string host{};         ///< Under which name it asks.
  std::string origin{};       ///< Of the page that asks, if it is a page.
  std::string fetch_site{};   ///< What the browser says of that page: same-origin, cross-site, ...
  bool has_intent = false;    ///< The field that a page of another origin cannot send.
  bool wants_html = false;    ///< A person with a browser, and no program.
  std::string authorization{};  ///< The field of that name.
  std::string session{};        ///< What the cookie of a login says.
  bool is_encrypted = false;    ///< Through TLS that ends here.
  bool has_secret = false;      ///< It shows the secret of this server, or a login with it.
  std::vector<std::string> certificate{};  ///< The names in the one that was shown.
};

/// An answer that is waited for. At home.
struct Departure {
  std::function<void()> tell{};      ///< Called if who asked goes away before.
  std::chrono::milliseconds wait{};  ///< How long it may take, besides what every answer takes.
};

/// What is asked for: the target of a request, taken apart.
struct Request {
  std::string path{};  ///< Without percent signs; starts with '/'. Holds any bytes.
  std::map<std::string, std::string, std::less<>> query{};
  std::string last_event_id{};  ///< Of the header, for event streams.
  std::string body{};
  Method method = Method::get;
  Caller caller{};
  /// What the caller may do; Router::admit() says it.
  auth::Access access = auth::Access::unrestricted();
  std::shared_ptr<Departure> departure{};  ///< For answers that are waited for; null: nobody looks.

  /// The value of a parameter, or nothing.
  [[nodiscard]] std::optional<std::string_view> parameter(std::string_view name) const;
};

/// Takes a target such as `/v1/locks/a%2Fb?limit=3` apart. In the query '+' is a space.
[[nodiscard]] Result<Request> parse_target(std::string_view target);

/// The value of a cookie in a Cookie field; empty if it is not there.
[[nodiscard]] std::string_view cookie_in(std::string_view field, std::string_view name);

/// May a request come with this Host header? With a number, `localhost`, none at all, or one of the
/// names in `allowed` ("a.example,b.example", or "*"). Otherwise somebody may have pointed a name
/// of his at our address, to read the answers from a page of his (DNS rebinding).
[[nodiscard]] bool is_known_host(std::string_view host, std::string_view allowed);

struct Response {
  unsigned status = 200;
  std::string content_type = "application/json";
  std::string body{};
  std::vector<std::pair<std::string, std::string>> fields{};
};

/// Called once, on any thread.
using Reply = std::move_only_function<void(Response)>;

/// An error as RFC 9457 has it.
[[nodiscard]] Response problem(unsigned status, std::string_view title, std::string_view detail);
/// The same for what the store said, with its code for programs.
[[nodiscard]] Response refusal(const Error& error);

}  // namespace tenure::server::http
