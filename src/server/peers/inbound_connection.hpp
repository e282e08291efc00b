#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>

#include "net/shares.hpp"
#include "server/peers/framed_connection.hpp"
#include "server/peers/options.hpp"
#include "server/raft/message.hpp"

namespace tenure::server::peers {

/// Connection that a peer opened: acceptor of the handshake, then source of its messages. Carries
/// nothing back except handshake replies and snapshot acknowledgements.
///
///     hello → proof → authenticated
///        \_______\→ rejected
///
/// Not thread safe; belongs to the loop's thread.
class InboundConnection : public std::enable_shared_from_this<InboundConnection> {
 public:
  /// Callbacks of the owner. None is called after close().
  struct Events {
    std::function<void(InboundConnection&)> authenticated;  ///< The handshake is complete.
    /// A frame of an authenticated peer.
    std::function<void(InboundConnection&, const ReceivedFrame&)> received;
    /// The handshake failed. A Refusal is being sent; `closed` follows.
    std::function<void(InboundConnection&)> rejected;
    /// The connection is closed. The last call.
    std::function<void(InboundConnection&)> closed;
  };

  InboundConnection(std::shared_ptr<const PeerContext> context, boost::asio::ip::tcp::socket socket,
                    std::string from);

  /// Keeps the slot of the TLS handshake until the handshake ends. REQUIRES: before start().
  void hold_handshake_slot(net::Shares::Share slot) { handshake_slot_ = std::move(slot); }
  void start(Events events);
  /// Sends the snapshot acknowledgement, or replaces one that is not sent yet.
  void acknowledge(const SnapshotHave& have);
  /// Closes the connection because of an invalid frame.
  void fail(const std::string& why);
  void close();
  [[nodiscard]] bool is_closed() const noexcept { return is_closed_; }

  /// Identity and advertised address of the peer. REQUIRES: is_authenticated().
  [[nodiscard]] const Hello& hello() const noexcept { return hello_; }
  [[nodiscard]] bool is_authenticated() const noexcept { return phase_ == Phase::authenticated; }
  [[nodiscard]] const std::string& from() const noexcept { return from_; }
  [[nodiscard]] std::uint64_t bytes_read() const noexcept { return connection_->bytes_read(); }
  /// Error that closed the connection, for the log; may be empty.
  [[nodiscard]] const std::string& error() const noexcept { return error_; }

 private:
  enum class Phase : std::uint8_t { hello, proof, authenticated, rejected };

  /// Dispatches a frame by the phase.
  void received(const ReceivedFrame& frame);
  /// Checks the Hello and sends a Welcome, or rejects the peer.
  void take_hello(const ReceivedFrame& frame);
  /// Completes the handshake if the proof and the incarnation are accepted.
  void take_proof(const ReceivedFrame& frame);
  /// Writes the pending Refusal or acknowledgement, if there is one.
  void written();
  /// Ends the handshake with a Refusal. The timer closes a connection that its peer keeps open.
  void reject(Refusal refusal);
  /// Closes the connection and notifies the owner.
  void finish();

  const std::shared_ptr<const PeerContext> context_;
  const std::string from_;
  boost::asio::steady_timer timer_;
  std::shared_ptr<FramedConnection> connection_;
  /// Slot of the TLS handshake; empty once it is complete.
  net::Shares::Share handshake_slot_;
  Events events_;
  Phase phase_ = Phase::hello;
  /// Hello of the peer; trusted only in phase `authenticated`.
  Hello hello_;
  /// Proof that the peer has to send.
  std::string expected_proof_;
  std::optional<SnapshotHave> have_;  ///< Acknowledgement to send.
  std::optional<Refusal> refusal_;    ///< Refusal to send.
  /// First error; later ones follow from it.
  std::string error_;
  bool is_closed_ = false;
};

}  // namespace tenure::server::peers
