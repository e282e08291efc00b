#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include <tenure/error.hpp>

#include "backends/url.hpp"

namespace tenure::cli {

/// Sends a request over a TCP connection of its own, and returns what the server sends until it
/// closes the connection. For diagnoses of servers that the client library does not speak to, such
/// as an HTTP port. At most 1 MiB. Without TLS. Blocks for up to the timeout, plus name resolution;
/// then returns what has arrived. `unavailable` if nothing has arrived.
[[nodiscard]] Result<std::string> exchange_text(const backends::Endpoint& server,
                                                std::string_view request,
                                                std::chrono::milliseconds timeout);

/// Body of the reply to an HTTP/1.0 GET, or POST if there is a body. `unavailable` if the server
/// sends no reply, or one with another status than 200.
struct HttpQuery {
  std::string_view path{};
  std::string_view body{};
};
[[nodiscard]] Result<std::string> query_http(const backends::Endpoint& server,
                                             const HttpQuery& query,
                                             std::chrono::milliseconds timeout);

}  // namespace tenure::cli
