#include "server/config/config.hpp"

#include <string_view>

#include "server/config/cluster_config.hpp"
#include "server/config/config_errors.hpp"
#include "server/config/units.hpp"

namespace tenure::server {
namespace {

/// An address that other machines can reach needs TLS and authentication, because every client
/// could otherwise acquire and break locks. Loopback addresses need neither.
void check_addresses(const Config& config, ConfigErrors& errors) {
  if (config.listen.insecure) {
    return;
  }
  // Either suffices: a client certificate or a token identifies the client.
  const bool authenticates_clients = !config.tls.client_ca.empty() || !config.auth.file.empty();
  if (is_open_to_network(config.listen.grpc) &&
      (config.tls.cert.empty() || !authenticates_clients)) {
    errors.add("listen.grpc: " + config.listen.grpc +
               " is reachable from the network: set tls.cert, tls.key, and auth.file or "
               "tls.client_ca; or listen on 127.0.0.1; or set --insecure to let every client "
               "acquire and break locks");
  }
  // HTTP can be `off`, which is no address and therefore not reachable.
  if (is_open_to_network(config.listen.http) && (!config.has_https() || !authenticates_clients)) {
    errors.add("listen.http: " + config.listen.http +
               " is reachable from the network: set tls.cert, tls.key, auth.file or "
               "tls.client_ca, and listen.http_tls = on; or listen on 127.0.0.1, or off; or set "
               "--insecure to let every client read all locks");
  }
}

/// Half a configuration would start without the intended protection.
void check_tls(const Config& config, ConfigErrors& errors) {
  const auto& tls = config.tls;
  if (tls.cert.empty() != tls.key.empty()) {
    errors.add(tls.cert.empty() ? "tls.key: requires tls.cert" : "tls.cert: requires tls.key");
  }
  if (!tls.client_ca.empty() && tls.cert.empty()) {
    errors.add("tls.client_ca: requires tls.cert and tls.key");
  }
  // Tested here, so that a missing file is reported together with all other errors.
  check_readable("tls.cert", tls.cert, errors);
  check_readable("tls.key", tls.key, errors);
  check_readable("tls.client_ca", tls.client_ca, errors);
  check_readable("auth.file", config.auth.file, errors);
}

}  // namespace

// Reports all errors at once: a user fixes a file in one attempt.
Result<void> check(const Config& config) {
  ConfigErrors errors;
  check_addresses(config, errors);
  check_tls(config, errors);
  check_cluster(config, errors);
  // One lost heartbeat must not cause an election.
  if (config.raft.heartbeat * 2 > config.raft.election_timeout) {
    errors.add("raft.heartbeat: must be at most half of raft.election_timeout");
  }
  if (config.limits.ttl_min > config.limits.ttl_max) {
    errors.add("limits.ttl_min: must not be longer than limits.ttl_max");
  }
  // A request with the longest name, owner and metadata must fit into one message; otherwise the
  // limits promise requests that the server can never accept.
  if (config.service.message_bytes_max < config.limits.name_bytes_max +
                                             config.limits.owner_bytes_max +
                                             config.limits.metadata_bytes_max) {
    errors.add(
        "service.message_bytes_max: must be at least limits.name_bytes_max + "
        "limits.owner_bytes_max + limits.metadata_bytes_max");
  }
  return errors.result();
}

}  // namespace tenure::server
