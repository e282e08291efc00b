#include "server/http/options.hpp"

#include <algorithm>
#include <utility>

#include "server/http/secret.hpp"

namespace tenure::server::http {

Result<ServerOptions> options_from(const Config& config, Users users) {
  const auto& listen = config.listen;
  ServerOptions options;
  options.address = *parse_address(listen.http);
  options.hosts = listen.http_hosts;
  options.rights = {.force = listen.http_force, .lock = listen.http_lock};
  // No file is created for a server that never checks the secret.
  const bool needs_secret = users == Users::none && (listen.http_force == HttpForce::loopback ||
                                                     listen.http_lock == HttpLock::loopback);
  if (needs_secret) {
    auto secret = open_secret(config.node.data_dir);
    if (!secret) {
      return std::unexpected(std::move(secret).error());
    }
    options.secret = *secret;
  }
  options.open_metrics = config.auth.open_metrics;
  options.connections_max = config.service.http_connections_max;
  options.buffer_events_max = config.service.watch_buffer_events_max;
  // An election takes up to two election timeouts and may have to be repeated.
  options.leader_grace = std::max(options.leader_grace, 4 * config.raft.election_timeout);
  return options;
}

}  // namespace tenure::server::http
