#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <tenure/error.hpp>

#include "backends/redis/server_options.hpp"

namespace tenure::backends::redis {

/// Servers that keep the locks, as described by a URL.
struct Deployment {
  /// Topology, chosen by the URL's scheme.
  enum class Form : std::uint8_t { one_server, sentinel, cluster };

  /// Topology of the servers.
  Form form = Form::one_server;
  /// Options of the server; with several servers, those that apply to all of them.
  ServerOptions server{};
  /// Endpoints of the server, of the Sentinels, or of some cluster nodes.
  std::vector<Endpoint> endpoints{};
  /// Name under which the Sentinels monitor the primary.
  std::string service{};
  /// ACL user for connections to the Sentinels; empty: the default user.
  std::string sentinel_user{};
  /// Password for connections to the Sentinels; empty: none.
  std::string sentinel_password{};

  /// Human-readable name for error messages, without credentials.
  [[nodiscard]] std::string name() const;
};

/// Parses the URL of a server, of Sentinels, or of a cluster, and removes the parts that it has
/// consumed:
///
///   redis://[user[:password]@]host[:port][/database][?namespace=…&tls_ca=…&tls_cert=…&tls_key=…]
///   redis+sentinel://[user[:password]@]host[:port],…/service[/database]
///                    [?sentinel_user=…&sentinel_password=…&…]
///   redis+cluster://[user[:password]@]host[:port],…
///
/// `rediss` instead of `redis` selects TLS. All accept the options of a server.
[[nodiscard]] Result<Deployment> deployment_from(Url& url, std::chrono::milliseconds timeout);

}  // namespace tenure::backends::redis
