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

/// What a configuration says about the other members, made ready before anything is written: files
/// are read, certificates looked at, and the port is taken. `unavailable`: the port cannot be had;
/// `invalid_argument`: a file is wrong, and the detail says which.
/// REQUIRES: config.has_peers(), and check() found nothing.
[[nodiscard]] Result<std::unique_ptr<PeerTransport>> prepare_transport(const Config& config,
                                                                       const raft::Report& report);

/// Whether the ports for clients can be bound, found out before anything is written. `unavailable`:
/// which setting cannot be had, and why.
[[nodiscard]] Result<void> try_client_ports(const Config& config);

/// The certificates of [peer_tls], read and checked for this member. `invalid_argument`: which file
/// is wrong. REQUIRES: config.peer_tls.cert is not empty.
[[nodiscard]] Result<TlsContexts> read_contexts(const Config& config);

/// The members of a plan, as the log knows them.
[[nodiscard]] std::vector<raft::Member> initial_members_of(const ClusterPlan& plan);

/// Who the configuration says that this is.
[[nodiscard]] raft::ExpectedIdentity expected_identity(const Config& config);

/// Cluster versions that this member announces.
[[nodiscard]] raft::Versions versions_of(const Config& config);

/// All that the configuration says about the store. REQUIRES: check() found nothing.
[[nodiscard]] raft::NodeOptions node_options(const Config& config, const raft::Report& report);

}  // namespace tenure::server::peers
