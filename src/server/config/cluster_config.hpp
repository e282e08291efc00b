#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "server/config/config.hpp"
#include "server/config/config_errors.hpp"
#include "server/config/members.hpp"

namespace tenure::server {

/// Checks the settings by which this member finds and authenticates its peers.
/// Also checks that the identity is consistent: an initial member is in the list, a joining one is
/// not. Files are only tested for readability; their contents are checked when they are loaded.
void check_cluster(const Config& config, ConfigErrors& errors);

/// Warnings about a valid configuration that is probably a mistake, one line each.
/// Not errors, because each has a legitimate use, for example in a test cluster.
[[nodiscard]] std::vector<std::string> warnings_about(const Config& config);

/// Effective cluster settings of a member: explicit settings, else the list, else the listeners.
struct ClusterPlan {
  /// 0: accept the id in the data directory.
  std::uint64_t cluster_id{};
  /// Initial members if the directory is new. Empty: this member waits to be added.
  std::vector<InitialMember> members{};
  std::string peer_address{};    ///< Advertised address for peers.
  std::string client_address{};  ///< Advertised address for clients.
};
/// REQUIRES: config.has_peers(), and check() found nothing.
[[nodiscard]] ClusterPlan plan_cluster(const Config& config);

}  // namespace tenure::server
