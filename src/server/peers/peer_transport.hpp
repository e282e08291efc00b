#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>

#include <tenure/error.hpp>

#include "net/handshake_limiter.hpp"
#include "net/shares.hpp"
#include "server/metrics/metrics.hpp"
#include "server/peers/inbound_connection.hpp"
#include "server/peers/listening_socket.hpp"
#include "server/peers/options.hpp"
#include "server/peers/outbound_connection.hpp"
#include "server/raft/folder.hpp"
#include "server/raft/transport.hpp"

namespace tenure::server::peers {

/// Transport of Raft messages over TCP, plain or with mutual TLS. Each member opens one connection
/// to every peer and sends only on that one, so its messages have one order. If a peer connects
/// again, its newest connection replaces the older one.
///
/// Guarantees: messages of one member arrive in order, at most once, or not at all. A message that
/// is lost with its connection is not repeated; a snapshot transfer resumes. A snapshot may arrive
/// after messages that were sent later.
///
/// Not thread safe: after start() all calls belong to the loop's thread.
class PeerTransport final : public raft::Transport {
 public:
  /// `invalid_argument`: a certificate or key is invalid.
  [[nodiscard]] static Result<std::unique_ptr<PeerTransport>> make(PeerOptions options,
                                                                   ListeningSocket listening);
  ~PeerTransport() override;

  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }

  /// Loads the incarnation and the origin of the data directory, and the registry of peers in it.
  /// REQUIRES: before start(). `invalid_argument`: the registry is damaged.
  [[nodiscard]] Result<void> load_identity(const raft::Folder& folder);

  /// `limited` is called on the loop's thread for each connection that is closed because of
  /// PeerOptions::handshakes or member_handshakes. REQUIRES: before start(), or on the loop's
  /// thread.
  void on_handshake_limit(std::function<void()> limited) {
    on_handshake_limit_ = std::move(limited);
  }

  void start(boost::asio::io_context& loop, Receive receive) override;
  void set_members(const std::vector<raft::Member>& members) override;
  void send(raft::MemberId peer, raft::Message message) override;
  [[nodiscard]] bool takes_snapshot(raft::MemberId peer, raft::Term term) override;
  [[nodiscard]] std::optional<raft::Versions> versions_of(raft::MemberId peer) const override;
  void stop() override;

  /// On the loop's thread.
  [[nodiscard]] std::vector<PeerTraffic> counts() const;
  /// Replaces the contexts for new connections; open connections stay. On the loop's thread.
  void renew_tls(TlsContexts contexts);

 private:
  /// State of one peer that outlives its connections.
  struct Peer {
    bool is_member = false;  ///< Whether it is in the configuration of this member.
    std::shared_ptr<OutboundConnection> outbound{};
    std::shared_ptr<InboundConnection> inbound{};
    std::optional<SnapshotReceiver> snapshots{};
    /// Network of the last connection that the peer made, before that of the configured address;
    /// see net::network_of().
    std::string network{};
    PeerTraffic counts{};  ///< Traffic received on earlier connections.
  };

  using Peers = std::map<raft::MemberId, Peer>;

  PeerTransport(PeerOptions options, std::shared_ptr<TlsContexts> tls, ListeningSocket listening);

  /// Accepts the next connection.
  void accept();
  void add_connection(boost::asio::ip::tcp::socket socket);
  /// Takes a slot for an incoming TLS handshake; nothing if a limit is reached. Without TLS the
  /// slot is empty.
  [[nodiscard]] std::optional<net::Shares::Share> admit_handshake(
      const boost::asio::ip::address& from);
  /// Evicts unauthenticated connections until there is room for one more.
  void make_room_for_unauthenticated();
  /// Makes an authenticated connection the inbound one of its peer.
  void add_peer_connection(InboundConnection& connection);
  /// Opens the connection to a peer that has connected, or ends its backoff.
  void call_back(Peer& peer, const InboundConnection& connection);
  void receive(InboundConnection& connection, const ReceivedFrame& frame);
  void take_snapshot_part(InboundConnection& connection, Peer& peer, const ReceivedFrame& frame);
  void take_message(InboundConnection& connection, Peer& peer, const ReceivedFrame& frame);
  void closed(InboundConnection& connection);
  /// Connects to the peer at this address, in place of a connection to another one.
  void set_outbound(Peer& peer, raft::MemberId id, const std::string& address);
  /// Closes both connections of a peer.
  static void forget(Peer& peer);
  Peers::iterator erase_if_done(Peers::iterator it);
  void sweep_later();
  void sweep();
  /// Logs a rejected connection; the same address and error at most once per report_interval.
  void report_rejected(const InboundConnection& connection);

  PeerOptions options_;
  std::shared_ptr<TlsContexts> tls_;  ///< Null: plain TCP.
  std::optional<ListeningSocket> listening_;
  const std::uint16_t port_;
  std::shared_ptr<PeerRegistry> registry_ = std::make_shared<PeerRegistry>();

  std::function<void()> on_handshake_limit_ = [] {};
  net::HandshakeLimiter handshakes_;         ///< Limiter for addresses of non-members.
  net::HandshakeLimiter member_handshakes_;  ///< Limiter for addresses of members.

  // Valid from start() to stop().
  std::shared_ptr<const PeerContext> context_;
  /// Callback for received messages.
  Receive receive_;
  std::optional<boost::asio::ip::tcp::acceptor> acceptor_;
  std::optional<boost::asio::steady_timer> timer_;
  /// Peers with a connection in either direction, and all members of the configuration.
  Peers peers_;
  std::vector<std::shared_ptr<InboundConnection>>
      unauthenticated_;  ///< Connections without a complete handshake, oldest first.
  /// Time of the last event of each address and error.
  std::map<std::string, std::chrono::steady_clock::time_point> reported_;

  /// Members as set_members() got them, also before start().
  std::vector<raft::Member> members_;
  /// Lifetime token: callbacks hold it weakly and do nothing after stop().
  std::shared_ptr<PeerTransport*> alive_;
};

}  // namespace tenure::server::peers
