#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/io_context.hpp>

#include "net/handshake_limiter.hpp"
#include "server/peers/certificates.hpp"
#include "server/peers/handshake.hpp"
#include "server/peers/message_codec.hpp"
#include "server/peers/outbox.hpp"
#include "server/peers/peer_registry.hpp"
#include "server/peers/snapshot_transfer.hpp"
#include "server/raft/report.hpp"

namespace tenure::server::peers {

/// Timeouts of connections between members.
struct PeerTimeouts {
  std::chrono::milliseconds connect{2000};
  /// From the TCP connection to the end of the handshake, TLS included.
  std::chrono::milliseconds handshake{5000};
  /// Backoff between two attempts to connect: upper bounds of the first delay and of every delay.
  std::chrono::milliseconds backoff_min{20};
  std::chrono::milliseconds backoff_max{1000};
  /// Time without TCP acknowledgements after which a peer counts as dead.
  std::chrono::milliseconds silence{3000};
};

/// Options of the transport, as prepare_transport() derives them from the configuration.
struct PeerOptions {
  Self self{};
  std::optional<PeerTls> tls{};  ///< Empty: plain TCP.
  PeerTimeouts timeouts{};
  OutboxLimits outbox{};
  MessageLimits message{};
  SnapshotLimits snapshot{};
  /// Maximum number of unauthenticated connections. A further one evicts one of them.
  std::size_t unauthenticated_max = 16;
  /// Limits of incoming TLS handshakes. A connection beyond them is closed at once. 100 handshakes
  /// per second take 3 % of a core with ECDSA and 20 % with RSA. `unauthenticated_max` bounds the
  /// handshakes in progress further.
  net::HandshakeLimiter::Limits handshakes{.in_progress = {.total_max = 64, .each_max = 64},
                                           .per_second = {.total_max = 100, .each_max = 50}};
  /// Limits for the addresses of members (configured as a number, or used by the last connection).
  /// A separate budget: a flood from other addresses does not keep members out.
  net::HandshakeLimiter::Limits member_handshakes = handshakes;
  /// Maximum number of authenticated peers outside the configuration of this member: the leader
  /// that adds it, a member that a newer configuration added, or a removed one.
  std::size_t non_members_max = 8;
  /// Receives log events.
  raft::Report report = raft::ignore_event;
};

/// Shared state of all connections of a member. Outlives them; belongs to the loop's thread.
struct PeerContext {
  /// Event loop of the store, on which all callbacks run.
  boost::asio::io_context& loop;
  /// Options of the transport.
  PeerOptions options;
  std::shared_ptr<TlsContexts>
      tls;  ///< TLS contexts, replaced by a certificate reload. Null: plain TCP.
  /// Executor of the TLS handshakes: a thread other than that of the loop. Empty: plain TCP.
  boost::asio::any_io_executor handshakes{};
  std::shared_ptr<PeerRegistry> registry;  ///< Incarnations of the voters. Not null.
};

}  // namespace tenure::server::peers
