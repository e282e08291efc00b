#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <boost/asio/ssl/context.hpp>

#include <tenure/error.hpp>

#include "backends/redis/endpoint_resolver.hpp"
#include "backends/url.hpp"
#include "backends/url_options.hpp"

namespace tenure::backends::redis {

/// What a server has to be.
enum class ServerRole : std::uint8_t {
  primary,          ///< Of its own, or with replicas.
  cluster_primary,  ///< A node of a cluster that has slots.
  cluster_member,   ///< Any node of a cluster, which can tell of the others.
  sentinel,
};

/// Where one Redis server is, and how it is spoken to.
struct ServerOptions {
  Endpoint endpoint{};
  std::shared_ptr<EndpointResolver>
      resolver{};  ///< Not null: they know, each time it is connected.
  ServerRole role = ServerRole::primary;
  std::string user{};      ///< Of its ACL; empty: the default user.
  std::string password{};  ///< Empty: none.
  unsigned database = 0;
  std::shared_ptr<boost::asio::ssl::context> tls{};  ///< Null: plain text.
  std::chrono::milliseconds timeout{1000};           ///< For a connection, and for an answer.
  std::string name_space = "tenure";  ///< Of the keys: letters, digits, '-', '_' and '.'.
};

/// redis://[user[:password]@]host[:port][/database][?namespace=…&tls_ca=…&tls_cert=…&tls_key=…];
/// rediss:// speaks TLS in any case. Takes what it knows out of the URL. `invalid_argument` says
/// what is wrong and where, and never repeats the password.
[[nodiscard]] Result<ServerOptions> server_options_from(Url& url,
                                                        std::chrono::milliseconds timeout);

// The parts of it, for other URLs of Redis; all of them take what they know out of the URL.

/// Table without options of its own.
[[nodiscard]] inline UrlOptions redis_options() {
  return UrlOptions(UrlOptions::common_with_event_loop);
}

/// user[:password]@
void take_user(Url& url, ServerOptions& server);
/// The path as the number of a database, and all options: those of every Redis server besides those
/// in `options`.
[[nodiscard]] Result<void> take_rest(Url& url, ServerOptions& server,
                                     UrlOptions options = redis_options());

}  // namespace tenure::backends::redis
