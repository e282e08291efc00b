#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <tenure/error.hpp>

#include "backends/redis/server_options.hpp"

namespace tenure::backends::redis {

/// All that a URL says of the servers that keep the locks.
struct Deployment {
  enum class Form : std::uint8_t { one_server, sentinel, cluster };

  Form form = Form::one_server;
  ServerOptions server{};             ///< Of the server, or what is the same for all of them.
  std::vector<Endpoint> endpoints{};  ///< Of SentinelResolver, or of members of a cluster.
  std::string service{};              ///< What SentinelResolver know it by.
  std::string sentinel_user{};        ///< Who we are to them;
  std::string sentinel_password{};    ///< empty: nobody.

  /// For people.
  [[nodiscard]] std::string name() const;
};

/// redis://…, as server_options_from() says, or
/// redis+sentinel://[user[:password]@]host[:port],…/service[/database][?sentinel_user=…&
/// sentinel_password=…&…], or redis+cluster://[user[:password]@]host[:port],…; with rediss instead
/// of redis through TLS, and with the same options.
[[nodiscard]] Result<Deployment> deployment_from(Url& url, std::chrono::milliseconds timeout);

}  // namespace tenure::backends::redis
