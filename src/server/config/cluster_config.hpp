#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "server/config/config.hpp"
#include "server/config/config_errors.hpp"
#include "server/config/members.hpp"

namespace tenure::server {

/// What is wrong with how this member shall find and trust the others.
void check_cluster(const Config& config, ConfigErrors& errors);

/// What works, and yet is probably not what was meant. A line for each.
[[nodiscard]] std::vector<std::string> warnings_about(const Config& config);

/// What the settings come to for a member of a cluster.
struct ClusterPlan {
  std::uint64_t cluster_id{};
  /// To begin with, if the folder is new; none: to be added by the others.
  std::vector<InitialMember> members{};
  std::string peer_address{};    ///< Where the others reach this one.
  std::string client_address{};  ///< Where clients do.
};
/// REQUIRES: config.has_peers(), and check() found nothing.
[[nodiscard]] ClusterPlan plan_cluster(const Config& config);

}  // namespace tenure::server
