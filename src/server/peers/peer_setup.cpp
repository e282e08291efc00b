#include "server/peers/peer_setup.hpp"

#include <fstream>
#include <iterator>
#include <string>
#include <utility>

#include "server/config/units.hpp"
#include "server/peers/listening_socket.hpp"

namespace tenure::server::peers {
namespace {

Result<std::string> read_file(const char* setting, const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!file.is_open() || file.bad()) {
    return fail(Errc::invalid_argument,
                std::string(setting) + ": cannot read '" + path.string() + "'");
  }
  return text;
}

Result<std::optional<PeerTls>> read_tls(const Config::PeerTls& paths) {
  if (paths.cert.empty()) {
    return std::nullopt;
  }
  PeerTls tls;
  struct Wanted {
    const char* setting;
    const std::filesystem::path& path;
    std::string& text;
  };
  const Wanted all[] = {{"peer_tls.cert", paths.cert, tls.certificate},
                        {"peer_tls.key", paths.key, tls.key},
                        {"peer_tls.ca", paths.ca, tls.ca}};
  for (const auto& [setting, path, text] : all) {
    auto read = read_file(setting, path);
    if (!read) {
      return std::unexpected(std::move(read).error());
    }
    text = *std::move(read);
  }
  return tls;
}

/// A client certificate of the members' authority does not make its owner a member: the URI is
/// missing. But an authority that signs clients could sign that URI, too.
void warn_about_shared_authority(const Config& config, const PeerTls& tls,
                                 const raft::Report& report) {
  if (config.tls.client_ca.empty()) {
    return;
  }
  const auto clients = read_file("tls.client_ca", config.tls.client_ca);
  if (clients && have_common_certificate(tls.ca, *clients)) {
    report(
        log::Level::warning, "peer_ca_also_signs_clients",
        {{"peer_ca", config.peer_tls.ca.string()}, {"client_ca", config.tls.client_ca.string()}});
  }
}

/// Secret without the line end that editors add. A short secret can be guessed, so it is refused.
Result<std::string> read_secret(const std::filesystem::path& path) {
  if (path.empty()) {
    return std::string();
  }
  auto secret = read_file("cluster.secret_file", path);
  if (!secret) {
    return secret;
  }
  // find_last_not_of() returns npos for an empty secret, and npos + 1 is 0.
  secret->erase(secret->find_last_not_of("\r\n") + 1);
  constexpr std::size_t secret_bytes_min = 16;
  if (secret->size() < secret_bytes_min) {
    return fail(Errc::invalid_argument, "cluster.secret_file: '" + path.string() +
                                            "' has less than 16 characters; generate one with "
                                            "`openssl rand -hex 32`");
  }
  return secret;
}

}  // namespace

Result<std::unique_ptr<PeerTransport>> prepare_transport(const Config& config,
                                                         const raft::Report& report) {
  const auto plan = plan_cluster(config);
  PeerOptions options;
  options.self = {.cluster = raft::ClusterId{plan.cluster_id},
                  .member = raft::MemberId{config.node.member_id},
                  .address = plan.peer_address,
                  .versions = versions_of(config)};
  options.report = report;
  auto tls = read_tls(config.peer_tls);
  if (!tls) {
    return std::unexpected(std::move(tls).error());
  }
  options.tls = *std::move(tls);
  if (options.tls) {
    warn_about_shared_authority(config, *options.tls, report);
  }
  auto secret = read_secret(config.cluster.secret_file);
  if (!secret) {
    return std::unexpected(std::move(secret).error());
  }
  options.self.secret = *std::move(secret);
  const auto address = parse_address(config.listen.peers);
  if (!address) {
    return std::unexpected(address.error());
  }
  auto listening = ListeningSocket::bind(address->host, address->port);
  if (!listening) {
    return fail(Errc::unavailable, "listen.peers: " + listening.error().detail);
  }
  return PeerTransport::make(std::move(options), *std::move(listening));
}

Result<TlsContexts> read_contexts(const Config& config) {
  auto files = read_tls(config.peer_tls);
  if (!files) {
    return std::unexpected(std::move(files).error());
  }
  return make_contexts(**files, raft::MemberId{config.node.member_id});
}

std::vector<raft::Member> initial_members_of(const ClusterPlan& plan) {
  std::vector<raft::Member> members;
  for (const auto& member : plan.members) {
    members.push_back(
        {.id = raft::MemberId{member.id}, .peer = member.peer, .client = member.client});
  }
  return members;
}

raft::ExpectedIdentity expected_identity(const Config& config) {
  const auto cluster =
      config.has_peers() ? plan_cluster(config).cluster_id : config.node.cluster_id;
  return {.cluster = raft::ClusterId(cluster), .member = raft::MemberId(config.node.member_id)};
}

raft::Versions versions_of(const Config& config) {
  const core::ClusterVersion wanted(config.cluster.version_max);
  return {.newest = core::newest_version,
          .wanted = wanted == core::ClusterVersion{} ? core::newest_version : wanted};
}

raft::NodeOptions node_options(const Config& config, const raft::Report& report) {
  raft::NodeOptions options;
  options.folder = config.node.data_dir;
  options.identity = expected_identity(config);
  options.limits = config.limits;
  options.version_max = versions_of(config).wanted;
  options.in_flight = {.commands = config.raft.commands_in_flight_max,
                       .bytes = config.raft.bytes_in_flight_max};
  options.entries_in_flight_max = config.raft.entries_in_flight_max;
  if (config.has_peers()) {
    options.initial_members = initial_members_of(plan_cluster(config));
  }
  // Used for an empty data directory only.
  options.bootstrap_mode =
      config.cluster.join ? raft::BootstrapMode::join : raft::BootstrapMode::found;
  options.election_timeout = config.raft.election_timeout;
  options.heartbeat = config.raft.heartbeat;
  options.segment_bytes = config.raft.segment_bytes;
  options.snapshot_log_bytes = config.raft.snapshot_bytes;
  options.report = report;
  return options;
}

Result<void> check_client_ports(const Config& config) {
  const std::pair<const char*, const std::string&> wanted[] = {{"listen.grpc", config.listen.grpc},
                                                               {"listen.http", config.listen.http}};
  for (const auto& [setting, text] : wanted) {
    const auto address = parse_address(text);
    if (!address) {
      continue;  // off
    }
    // The socket is closed again at once: the servers of these ports bind them later.
    if (const auto tried = ListeningSocket::bind(address->host, address->port); !tried) {
      return fail(Errc::unavailable, std::string(setting) + ": " + tried.error().detail);
    }
  }
  return {};
}

}  // namespace tenure::server::peers
