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

/// Members that talk over TCP, plain or with mutual TLS: one connection in each direction. A member
/// says everything on the connection that it has made itself, so what it says has one order; what
/// it hears comes on the one that the other has made, and if that calls again, the newest counts.
///
/// What is lost with a connection stays lost, except for a snapshot on its way: that goes on.
/// Snapshots may arrive later than what was sent after them.
class PeerTransport final : public raft::Transport {
 public:
  /// `invalid_argument`: what is wrong with the certificates.
  [[nodiscard]] static Result<std::unique_ptr<PeerTransport>> make(PeerOptions options,
                                                                   ListeningSocket listening);
  ~PeerTransport() override;

  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }

  /// Which directory this member has, where it also remembers those of the others. REQUIRES: before
  /// start(). `invalid_argument`: what is remembered there is damaged.
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
  /// New connections use these; those that are open stay. On the loop's thread.
  void renew_tls(TlsContexts contexts);

 private:
  /// All about one peer that outlives a connection.
  struct Peer {
    bool is_member = false;  ///< Else a guest.
    std::shared_ptr<OutboundConnection> outbound{};
    std::shared_ptr<InboundConnection> inbound{};
    std::optional<SnapshotReceiver> snapshots{};
    /// Network of the last connection that the peer made, before that of the configured address;
    /// see net::network_of().
    std::string network{};
    PeerTraffic counts{};  ///< Of what came from it on earlier connections.
  };

  using Peers = std::map<raft::MemberId, Peer>;

  PeerTransport(PeerOptions options, std::shared_ptr<TlsContexts> tls, ListeningSocket listening);

  void accept();
  void add_connection(boost::asio::ip::tcp::socket socket);
  /// Takes a slot for an incoming TLS handshake; nothing if a limit is reached. Without TLS the
  /// slot is empty.
  [[nodiscard]] std::optional<net::Shares::Share> admit_handshake(
      const boost::asio::ip::address& from);
  void make_room_for_unauthenticated();
  void add_peer_connection(InboundConnection& connection);
  void call_back(Peer& peer, const InboundConnection& connection);
  void receive(InboundConnection& connection, const ReceivedFrame& frame);
  void take_snapshot_part(InboundConnection& connection, Peer& peer, const ReceivedFrame& frame);
  void take_message(InboundConnection& connection, Peer& peer, const ReceivedFrame& frame);
  void closed(InboundConnection& connection);
  void set_outbound(Peer& peer, raft::MemberId id, const std::string& address);
  static void forget(Peer& peer);
  Peers::iterator erase_if_done(Peers::iterator it);
  void sweep_later();
  void sweep();
  /// Says the same about the same place once in a while only.
  void report_rejected(const InboundConnection& connection);

  PeerOptions options_;
  std::shared_ptr<TlsContexts> tls_;  ///< Null: plain TCP.
  std::optional<ListeningSocket> listening_;
  const std::uint16_t port_;
  std::shared_ptr<PeerRegistry> registry_ = std::make_shared<PeerRegistry>();

  std::function<void()> on_handshake_limit_ = [] {};
  net::HandshakeLimiter handshakes_;         ///< Of addresses that are not known as a member's.
  net::HandshakeLimiter member_handshakes_;  ///< Of addresses of members.

  // From start() to stop().
  std::shared_ptr<const PeerContext> context_;
  Receive receive_;
  std::optional<boost::asio::ip::tcp::acceptor> acceptor_;
  std::optional<boost::asio::steady_timer> timer_;
  Peers peers_;
  std::vector<std::shared_ptr<InboundConnection>> unauthenticated_;  ///< Oldest first.
  std::map<std::string, std::chrono::steady_clock::time_point> reported_;

  std::vector<raft::Member> members_;
  /// Callbacks hold it weakly: after stop() they find nobody.
  std::shared_ptr<PeerTransport*> alive_;
};

}  // namespace tenure::server::peers
