#include "server/config/config.hpp"

#include <string_view>

#include "server/config/cluster_config.hpp"
#include "server/config/config_errors.hpp"
#include "server/config/units.hpp"

namespace tenure::server {
namespace {

void check_addresses(const Config& config, ConfigErrors& errors) {
  if (config.listen.insecure) {
    return;
  }
  const bool knows_clients = !config.tls.client_ca.empty() || !config.auth.file.empty();
  if (is_open_to_network(config.listen.grpc) && (config.tls.cert.empty() || !knows_clients)) {
    errors.add("listen.grpc: " + config.listen.grpc +
               " is open to the network: set tls.cert and tls.key, and auth.file or "
               "tls.client_ca; or listen on 127.0.0.1, or accept that everybody can take and "
               "break locks with --insecure");
  }
  if (is_open_to_network(config.listen.http) && (!config.has_https() || !knows_clients)) {
    errors.add("listen.http: " + config.listen.http +
               " is open to the network: set tls.cert and tls.key, and auth.file or "
               "tls.client_ca, and leave listen.http_tls on; or listen on 127.0.0.1, or off, "
               "or accept that everybody can look with --insecure");
  }
}

void check_tls(const Config& config, ConfigErrors& errors) {
  const auto& tls = config.tls;
  if (tls.cert.empty() != tls.key.empty()) {
    errors.add(tls.cert.empty() ? "tls.key: a key needs its certificate: set tls.cert"
                                : "tls.cert: a certificate needs its key: set tls.key");
  }
  if (!tls.client_ca.empty() && tls.cert.empty()) {
    errors.add("tls.client_ca: clients are checked only with TLS: set tls.cert and tls.key");
  }
  check_readable("tls.cert", tls.cert, errors);
  check_readable("tls.key", tls.key, errors);
  check_readable("tls.client_ca", tls.client_ca, errors);
  check_readable("auth.file", config.auth.file, errors);
}

}  // namespace

Result<void> check(const Config& config) {
  ConfigErrors errors;
  check_addresses(config, errors);
  check_tls(config, errors);
  check_cluster(config, errors);
  if (config.raft.heartbeat * 2 > config.raft.election_timeout) {
    errors.add("raft.heartbeat: must be at most half of raft.election_timeout");
  }
  if (config.limits.ttl_min > config.limits.ttl_max) {
    errors.add("limits.ttl_min: must not be longer than limits.ttl_max");
  }
  // A request with the longest name, owner and metadata must fit into a message.
  if (config.service.message_bytes_max < config.limits.name_bytes_max +
                                             config.limits.owner_bytes_max +
                                             config.limits.metadata_bytes_max) {
    errors.add("service.message_bytes_max: smaller than a name, an owner and metadata together");
  }
  return errors.result();
}

}  // namespace tenure::server
