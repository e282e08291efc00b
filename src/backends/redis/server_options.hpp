#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include <boost/asio/ssl/context.hpp>

#include <tenure/error.hpp>

#include "backends/url.hpp"
#include "backends/url_options.hpp"

namespace tenure::backends::redis {

/// Role that a server must have; the handshake of a connection verifies it.
enum class ServerRole : std::uint8_t {
  /// Standalone server, or the primary of a replication group.
  primary,
  /// Cluster node that serves slots.
  cluster_primary,
  /// Any cluster node, queried for the slot table.
  cluster_member,
  /// Sentinel, queried for the current primary.
  sentinel,
};

/// Receives the current endpoint of a server, or why it is unknown. Called once, unless the loop
/// ends before.
using OnResolved = std::move_only_function<void(const Result<Endpoint>&)>;

/// Endpoint of one Redis server, and the credentials and options of connections to it.
struct ServerOptions {
  /// Address of the server; the initial one if `resolve` is set.
  Endpoint endpoint{};
  /// Looks up the endpoint before each connection attempt, for a server that can move; null:
  /// `endpoint` is fixed.
  std::function<void(OnResolved)> resolve{};
  /// Role that the handshake requires.
  ServerRole role = ServerRole::primary;
  /// ACL user; empty: the default user.
  std::string user{};
  /// Password of that user; empty: none.
  std::string password{};
  /// Database number, selected by the handshake.
  unsigned database = 0;
  /// TLS context; null: plain text.
  std::shared_ptr<boost::asio::ssl::context> tls{};
  /// Limit for a connection attempt and for a reply.
  std::chrono::milliseconds timeout{1000};
  /// Prefix of all keys: letters, digits, '-', '_' and '.'.
  std::string name_space = "tenure";
};

/// Default port of redis-server.
inline constexpr std::uint16_t server_port = 6379;

// Parts of the parsers of URLs for Redis. Each removes what it has consumed from the URL. Errors
// are `invalid_argument` with the position in the URL; they never contain the password.
//
/// Table of the options that every Redis URL accepts.
[[nodiscard]] inline UrlOptions redis_options() {
  return UrlOptions(UrlOptions::common_with_event_loop);
}

/// Consumes user[:password]@.
void take_user(Url& url, ServerOptions& server);
/// Consumes the path as the database number, the options of every Redis server, and those in
/// `options`.
[[nodiscard]] Result<void> take_rest(Url& url, ServerOptions& server, UrlOptions options);

}  // namespace tenure::backends::redis
