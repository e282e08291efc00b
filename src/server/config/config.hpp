#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include <tenure/error.hpp>

#include "core/limits.hpp"
#include "sys/log.hpp"

namespace tenure::server {

/// Policy for forced releases over HTTP and in the dashboard.
/// There is no `open`: a forced release breaks the lock of another client.
enum class HttpForce : std::uint8_t { off, loopback };
[[nodiscard]] constexpr std::string_view to_string(HttpForce policy) noexcept {
  return policy == HttpForce::off ? "off" : "loopback";
}

/// Policy for acquiring and releasing locks over HTTP.
enum class HttpLock : std::uint8_t { off, loopback, open };
[[nodiscard]] constexpr std::string_view to_string(HttpLock policy) noexcept {
  switch (policy) {
    case HttpLock::off: return "off";
    case HttpLock::loopback: return "loopback";
    case HttpLock::open: break;
  }
  return "open";
}

/// Whether HTTP uses TLS if a certificate is configured.
enum class HttpTls : std::uint8_t { off, on };
[[nodiscard]] constexpr std::string_view to_string(HttpTls policy) noexcept {
  return policy == HttpTls::off ? "off" : "on";
}

/// All settings with their defaults. settings.cpp is the only place that documents each field,
/// beside its key and its range. Plain value; not thread safe.
///
/// The sections and fields have the names of the keys in the file. A default must be safe: without
/// any setting the daemon listens on loopback only.
struct Config {
  /// Identity of this member and its directory.
  struct Node {
    std::filesystem::path data_dir = "/var/lib/tenure";
    std::string name{};
    std::string labels{};
    std::uint64_t cluster_id = 0;
    std::uint64_t member_id = 0;
  };

  /// Addresses and the policies of HTTP.
  struct Listen {
    std::string grpc = "127.0.0.1:7420";
    std::string http = "127.0.0.1:7421";
    std::string http_hosts{};
    HttpForce http_force = HttpForce::loopback;
    HttpLock http_lock = HttpLock::loopback;
    HttpTls http_tls = HttpTls::on;
    std::string peers = "127.0.0.1:7422";
    bool insecure = false;
  };

  /// Membership; without it the daemon is a single node.
  struct Cluster {
    std::string members{};
    bool join = false;
    std::string name{};
    std::string peer_address{};
    std::string client_address{};
    std::filesystem::path secret_file{};
    std::uint64_t version_max = 0;
  };

  /// Certificates of gRPC and HTTP. PeerTls has its own, because a client certificate must not make
  /// its owner a member.
  struct Tls {
    std::filesystem::path cert{};
    std::filesystem::path key{};
    std::filesystem::path client_ca{};
  };

  struct PeerTls {
    std::filesystem::path cert{};
    std::filesystem::path key{};
    std::filesystem::path ca{};
  };

  /// Users file; without one every client may do everything.
  struct Auth {
    std::filesystem::path file{};
    bool open_metrics = false;
  };

  struct Logs {
    log::Level level = log::Level::info;
    log::Format format = log::Format::automatic;
  };

  /// Log and elections. The heartbeat is a sixth of the election timeout, so that a few lost
  /// heartbeats cause no election.
  struct Raft {
    std::size_t segment_bytes = std::size_t{8} << 20U;
    std::size_t snapshot_bytes = std::size_t{64} << 20U;
    std::uint32_t entries_in_flight_max = 2;
    std::size_t commands_in_flight_max = 100'000;
    std::size_t bytes_in_flight_max = std::size_t{64} << 20U;
    std::chrono::milliseconds election_timeout{300};
    std::chrono::milliseconds heartbeat{50};
  };

  /// Limits of this process. The limits of the store (`limits`) are replicated instead.
  struct Service {
    std::size_t connections_max = 10'000;
    std::size_t http_connections_max = 256;
    std::size_t message_bytes_max = std::size_t{64} << 10U;
    std::size_t streams_max = 10'000;
    std::size_t watches_per_stream_max = 64;
    std::size_t watch_buffer_events_max = 4096;
  };

  Node node{};
  Listen listen{};
  Cluster cluster{};
  Tls tls{};
  PeerTls peer_tls{};
  Auth auth{};
  Logs log{};
  Raft raft{};
  Service service{};
  /// More leases per client than the default of the core: the client library creates one lease for
  /// each hold and each wait.
  core::Limits limits{.leases_per_client_max = 100'000};

  /// Whether HTTP uses TLS.
  [[nodiscard]] bool has_https() const {
    return !tls.cert.empty() && listen.http_tls == HttpTls::on;
  }
  /// Whether this is a cluster member, or is about to join a cluster. If not, it is a single node
  /// and opens no port for peers.
  [[nodiscard]] bool has_peers() const { return !cluster.members.empty() || cluster.join; }
};

/// Checks rules that involve several settings, such as: an address reachable from the network needs
/// TLS and authentication, or `insecure`. Reports all errors at once, one line each.
/// A rule for a single setting is in settings.cpp, where it is part of the reference.
[[nodiscard]] Result<void> check(const Config& config);

}  // namespace tenure::server
