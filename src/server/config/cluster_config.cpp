#include "server/config/cluster_config.hpp"

#include <algorithm>
#include <string_view>

#include "core/version.hpp"
#include "server/config/units.hpp"

namespace tenure::server {
namespace {

/// Of one request: half of what fits into one entry between members (peers/message_codec.hpp).
constexpr std::size_t replicated_bytes_max = std::size_t{32} << 20U;

/// The list, or nothing if it is wrong: then settings.cpp has complained.
std::vector<InitialMember> members_of(const Config& config) {
  return parse_members(config.cluster.members).value_or(std::vector<InitialMember>{});
}

const InitialMember* find_own(const std::vector<InitialMember>& members, const Config& config) {
  const auto it = std::ranges::find(members, config.node.member_id, &InitialMember::id);
  return it == members.end() ? nullptr : &*it;
}

void check_identity(const Config& config, const std::vector<InitialMember>& members,
                    ConfigErrors& errors) {
  const auto id = std::to_string(config.node.member_id);
  if (config.node.member_id == 0) {
    errors.add("node.member_id: say which member this is: --member-id");
    return;
  }
  const bool is_first = find_own(members, config) != nullptr;
  if (!config.cluster.join && !is_first) {
    errors.add("cluster.members: member " + id +
               " (node.member_id) is not in the list. A member that is added to a cluster "
               "later starts with --join");
  }
  if (config.cluster.join && is_first) {
    errors.add("cluster.join: member " + id +
               " is in cluster.members, so it is there from the beginning. One that lost its "
               "data joins under an id that nobody had before");
  }
  if (config.cluster.join && members.empty() && config.node.cluster_id == 0) {
    errors.add(
        "cluster.join: name the cluster: node.cluster_id as `/v1/status` of its members "
        "says, or cluster.members and cluster.name as it began with");
  }
}

void check_peer_tls(const Config& config, ConfigErrors& errors) {
  const auto& tls = config.peer_tls;
  const auto given = static_cast<int>(!tls.cert.empty()) + static_cast<int>(!tls.key.empty()) +
                     static_cast<int>(!tls.ca.empty());
  if (given != 0 && given != 3) {
    errors.add(
        "peer_tls: members show certificates to each other: set peer_tls.cert, "
        "peer_tls.key and peer_tls.ca, all three or none");
  }
  check_readable("peer_tls.cert", tls.cert, errors);
  check_readable("peer_tls.key", tls.key, errors);
  check_readable("peer_tls.ca", tls.ca, errors);
  check_readable("cluster.secret_file", config.cluster.secret_file, errors);
}

void check_peer_addresses(const Config& config, const std::vector<InitialMember>& members,
                          ConfigErrors& errors) {
  if (config.listen.insecure || !config.peer_tls.cert.empty()) {
    return;
  }
  constexpr std::string_view advice =
      " is open to the network: set peer_tls.cert, peer_tls.key and peer_tls.ca, or accept with "
      "--insecure that everybody there can be a member";
  if (is_open_to_network(config.listen.peers)) {
    errors.add("listen.peers: " + config.listen.peers + std::string(advice));
  }
  const auto far = std::ranges::find_if(
      members, [](const InitialMember& member) { return is_open_to_network(member.peer); });
  if (far != members.end()) {
    errors.add("cluster.members: " + far->peer + std::string(advice));
  }
}

/// Where others call this member, if that does not stand in the list: they are told so when it
/// joins, and would call themselves at 0.0.0.0.
void check_own_addresses(const Config& config, ConfigErrors& errors) {
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
    if (const auto checked = check_advertised_address(text); !checked && parse_address(text)) {
      errors.add(std::string(own.setting) + ": " + checked.error().detail +
                 (is_set ? "" : " (it is " + std::string(own.listens_by) + ")"));
    }
  }
}

}  // namespace

void check_cluster(const Config& config, ConfigErrors& errors) {
  if (config.cluster.version_max > core::newest_version.get()) {
    errors.add("cluster.version_max: this program has cluster versions " +
               std::to_string(core::oldest_version.get()) + " to " +
               std::to_string(core::newest_version.get()));
  }
  check_peer_tls(config, errors);
  if (!config.has_peers()) {
    return;
  }
  const auto members = members_of(config);
  check_identity(config, members, errors);
  check_peer_addresses(config, members, errors);
  check_own_addresses(config, errors);
  if (config.service.message_bytes_max > replicated_bytes_max) {
    errors.add("service.message_bytes_max: members pass on at most 32MiB at once");
  }
  const auto peers = parse_address(config.listen.peers);
  if (peers && peers->port == 0 && find_own(members, config) != nullptr) {
    errors.add(
        "listen.peers: the others call a port that stands in cluster.members; it cannot "
        "be any free one");
  }
}

std::vector<std::string> warnings_about(const Config& config) {
  std::vector<std::string> warnings;
  const auto members = members_of(config);
  if (members.size() > 1 && members.size() % 2 == 0) {
    warnings.push_back(std::to_string(members.size()) + " members stand no more failures than " +
                       std::to_string(members.size() - 1) + ": an odd number is better");
  }
  const bool is_plain = config.has_peers() && config.peer_tls.cert.empty();
  if (is_plain && config.cluster.secret_file.empty()) {
    warnings.emplace_back(
        "members have neither TLS nor a secret: whoever reaches their ports and "
        "knows the cluster id can be one. Set peer_tls or cluster.secret_file");
  }
  return warnings;
}

ClusterPlan plan_cluster(const Config& config) {
  ClusterPlan plan;
  plan.members = members_of(config);
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
  if (config.cluster.join) {
    plan.members.clear();
  }
  return plan;
}

}  // namespace tenure::server
