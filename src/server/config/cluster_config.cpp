#include "server/config/cluster_config.hpp"

#include <algorithm>
#include <string_view>

#include "core/version.hpp"
#include "server/config/units.hpp"

namespace tenure::server {
namespace {

/// Upper bound of one request: half of the largest entry that members exchange
/// (MessageLimits::entry_bytes_max in peers/message_codec.hpp).
constexpr std::size_t replicated_bytes_max = std::size_t{32} << 20U;

/// Initial members; empty if the list is invalid, which settings.cpp reports when it assigns it.
std::vector<InitialMember> members_of(const Config& config) {
  return parse_members(config.cluster.members).value_or(std::vector<InitialMember>{});
}

/// Entry of this member in the list; null: it joins an existing cluster.
const InitialMember* find_own(const std::vector<InitialMember>& members, const Config& config) {
  const auto it = std::ranges::find(members, config.node.member_id, &InitialMember::id);
  return it == members.end() ? nullptr : &*it;
}

/// A member is either in the list (a new cluster) or joins (an existing one). Both or neither is a
/// mistake that could start a second cluster under the same id.
void check_identity(const Config& config, const std::vector<InitialMember>& members,
                    ConfigErrors& errors) {
  const auto id = std::to_string(config.node.member_id);
  if (config.node.member_id == 0) {
    errors.add("node.member_id: required in a cluster (--member-id)");
    return;
  }
  const bool is_first = find_own(members, config) != nullptr;
  if (!config.cluster.join && !is_first) {
    errors.add("cluster.members: member " + id +
               " (node.member_id) is not in the list. Start a member that is added to an existing "
               "cluster with --join");
  }
  if (config.cluster.join && is_first) {
    errors.add("cluster.join: member " + id +
               " is an initial member (cluster.members). A member that lost its data joins under "
               "an unused id");
  }
  if (config.cluster.join && members.empty() && config.node.cluster_id == 0) {
    errors.add(
        "cluster.join: requires node.cluster_id (see `/v1/status` of a member), or the "
        "cluster.members and cluster.name of the cluster");
  }
}

/// TLS between members is always mutual: a member is a client and a server of each peer. One file
/// without the others would look encrypted without being authenticated.
void check_peer_tls(const Config& config, ConfigErrors& errors) {
  const auto& tls = config.peer_tls;
  const auto given = static_cast<int>(!tls.cert.empty()) + static_cast<int>(!tls.key.empty()) +
                     static_cast<int>(!tls.ca.empty());
  if (given != 0 && given != 3) {
    errors.add(
        "peer_tls: mutual TLS between members requires peer_tls.cert, peer_tls.key and "
        "peer_tls.ca, all three or none");
  }
  check_readable("peer_tls.cert", tls.cert, errors);
  check_readable("peer_tls.key", tls.key, errors);
  check_readable("peer_tls.ca", tls.ca, errors);
  check_readable("cluster.secret_file", config.cluster.secret_file, errors);
}

/// Requires TLS for peer addresses that the network can reach: a host that acts as a member can
/// change the log.
void check_peer_addresses(const Config& config, const std::vector<InitialMember>& members,
                          ConfigErrors& errors) {
  if (config.listen.insecure || !config.peer_tls.cert.empty()) {
    return;
  }
  constexpr std::string_view advice =
      " is reachable from the network: set peer_tls.cert, peer_tls.key and peer_tls.ca, or set "
      "--insecure to let every host act as a member";
  if (is_open_to_network(config.listen.peers)) {
    errors.add("listen.peers: " + config.listen.peers + std::string(advice));
  }
  // A loopback listener does not help if peers are elsewhere: their connections leave this machine.
  const auto far = std::ranges::find_if(
      members, [](const InitialMember& member) { return is_open_to_network(member.peer); });
  if (far != members.end()) {
    errors.add("cluster.members: " + far->peer + std::string(advice));
  }
}

/// Checks the advertised addresses, unless cluster.members contains them. A joining member
/// announces them to its peers, which would connect to themselves at a wildcard address such as
/// 0.0.0.0.
void check_own_addresses(const Config& config, ConfigErrors& errors) {
  /// Advertised address, with the listener that is its default.
  struct Own {
    std::string_view setting;
    const std::string& set;
    std::string_view listens_by;
    const std::string& listens;
  };
  const auto& cluster = config.cluster;
  for (const auto& own :
       {Own{"cluster.peer_address", cluster.peer_address, "listen.peers", config.listen.peers},
        Own{"cluster.client_address", cluster.client_address, "listen.grpc", config.listen.grpc}}) {
    const bool is_set = !own.set.empty();
    if (!is_set && !cluster.join) {
      continue;
    }
    const auto& text = is_set ? own.set : own.listens;
    // A text that is no address at all is reported by settings.cpp, so it is skipped here.
    if (const auto checked = check_advertised_address(text); !checked && parse_address(text)) {
      errors.add(std::string(own.setting) + ": " + checked.error().detail +
                 (is_set ? "" : " (default: " + std::string(own.listens_by) + ")"));
    }
  }
}

}  // namespace

void check_cluster(const Config& config, ConfigErrors& errors) {
  // Also for a single node, which is a Raft group of one.
  if (config.cluster.version_max > core::newest_version.get()) {
    errors.add("cluster.version_max: this program supports cluster versions " +
               std::to_string(core::oldest_version.get()) + " to " +
               std::to_string(core::newest_version.get()));
  }
  check_peer_tls(config, errors);
  // The rules below concern peers; the listener of a single node stays closed.
  if (!config.has_peers()) {
    return;
  }
  const auto members = members_of(config);
  check_identity(config, members, errors);
  check_peer_addresses(config, members, errors);
  check_own_addresses(config, errors);
  if (config.service.message_bytes_max > replicated_bytes_max) {
    errors.add("service.message_bytes_max: members replicate requests of at most 32MiB");
  }
  const auto peers = parse_address(config.listen.peers);
  if (peers && peers->port == 0 && find_own(members, config) != nullptr) {
    errors.add(
        "listen.peers: port 0 is not possible for an initial member: its peers connect to the "
        "port in cluster.members");
  }
}

std::vector<std::string> warnings_about(const Config& config) {
  std::vector<std::string> warnings;
  const auto members = members_of(config);
  // A quorum of 4 needs 3 votes: it tolerates one failure, as 3 members do, and has more to fail.
  if (members.size() > 1 && members.size() % 2 == 0) {
    warnings.push_back(std::to_string(members.size()) + " members tolerate no more failures than " +
                       std::to_string(members.size() - 1) + ": use an odd number");
  }
  const bool is_plain = config.has_peers() && config.peer_tls.cert.empty();
  if (is_plain && config.cluster.secret_file.empty()) {
    warnings.emplace_back(
        "peers are not authenticated: a host that reaches listen.peers and knows the cluster id "
        "can act as a member. Set peer_tls or cluster.secret_file");
  }
  return warnings;
}

// Precedence of an address: the explicit setting, the entry of this member in cluster.members, the
// listener. A joining member has no initial members: its peers add it with the address that it
// advertises.
ClusterPlan plan_cluster(const Config& config) {
  ClusterPlan plan;
  plan.members = members_of(config);
  // An explicit id wins, so that a cluster keeps its id when the addresses of its members change.
  plan.cluster_id = config.node.cluster_id != 0 || plan.members.empty()
                        ? config.node.cluster_id
                        : cluster_id_of(plan.members, config.cluster.name);
  const auto* own = find_own(plan.members, config);
  const auto first_of = [](const std::string& set, const std::string* listed,
                           const std::string& listens) {
    return !set.empty() ? set : listed != nullptr ? *listed : listens;
  };
  plan.peer_address = first_of(config.cluster.peer_address, own != nullptr ? &own->peer : nullptr,
                               config.listen.peers);
  plan.client_address = first_of(config.cluster.client_address,
                                 own != nullptr ? &own->client : nullptr, config.listen.grpc);
  // The list was needed for the cluster id only; a joining member must not found a cluster.
  if (config.cluster.join) {
    plan.members.clear();
  }
  return plan;
}

}  // namespace tenure::server
