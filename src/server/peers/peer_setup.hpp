#pragma once

#include <memory>
#include <vector>

#include <tenure/error.hpp>

#include "server/config/cluster_config.hpp"
#include "server/config/config.hpp"
#include "server/peers/peer_transport.hpp"
#include "server/raft/entry.hpp"
#include "server/raft/folder.hpp"
#include "server/raft/node_options.hpp"
#include "server/raft/versions.hpp"

namespace tenure::server::peers {

/// Transport for the configured cluster: reads the files, checks the certificates and binds the
/// port before anything is written to disk, so that a failed start leaves no trace. `unavailable`:
/// the port cannot be bound; `invalid_argument`: a file is invalid, the detail names it. REQUIRES:
/// config.has_peers() and check(config).
[[nodiscard]] Result<std::unique_ptr<PeerTransport>> prepare_transport(const Config& config,
                                                                       const raft::Report& report);

/// Checks that the ports for clients can be bound, before anything is written. `unavailable`: the
/// detail names the setting and the error.
[[nodiscard]] Result<void> check_client_ports(const Config& config);

/// TLS contexts of [peer_tls], checked for this member. `invalid_argument`: the detail names the
/// file. REQUIRES: config.peer_tls.cert is not empty.
[[nodiscard]] Result<TlsContexts> read_contexts(const Config& config);

/// Initial members in the form of the log.
[[nodiscard]] std::vector<raft::Member> initial_members_of(const ClusterPlan& plan);

/// Identity that the configuration requires of the data directory.
[[nodiscard]] raft::ExpectedIdentity expected_identity(const Config& config);

/// Cluster versions that this member announces.
[[nodiscard]] raft::Versions versions_of(const Config& config);

/// Options of the store. REQUIRES: check(config).
[[nodiscard]] raft::NodeOptions node_options(const Config& config, const raft::Report& report);

}  // namespace tenure::server::peers
