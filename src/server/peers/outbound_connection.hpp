#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <boost/asio/steady_timer.hpp>

#include "net/backoff.hpp"
#include "net/connector.hpp"
#include "server/metrics/metrics.hpp"
#include "server/peers/framed_connection.hpp"
#include "server/peers/options.hpp"
#include "server/peers/outbox.hpp"
#include "server/peers/snapshot_transfer.hpp"
#include "server/raft/message.hpp"

namespace tenure::server::peers {

/// Reconnecting connection to one peer: initiator of the handshake, then sink of its messages. Only
/// snapshot acknowledgements come back. Reconnects with exponential backoff.
///
///     waiting → connecting → handshake → open
///        ↑__________|____________|________|
///
/// Messages that are queued when the connection breaks are dropped: Raft repeats them. Not thread
/// safe; belongs to the loop's thread.
class OutboundConnection : public std::enable_shared_from_this<OutboundConnection> {
 public:
  OutboundConnection(std::shared_ptr<const PeerContext> context, raft::MemberId peer,
                     std::string address);

  void start();
  /// Queues the message; drops it if the connection is not open or the outbox is full.
  void send(raft::Message message);
  /// Whether send() would accept a snapshot now. A transfer in progress continues in this term if
  /// the term is newer.
  [[nodiscard]] bool takes_snapshot(raft::Term term);
  /// Ends the backoff: the peer has just connected to this member, so it is reachable.
  void connect_now();
  /// No activity after this call.
  void close();
  /// Periodic work: aborts a stalled snapshot transfer.
  void sweep();

  [[nodiscard]] const std::string& address() const noexcept { return address_; }
  /// Versions that the peer announced on the open connection; empty: not connected.
  [[nodiscard]] std::optional<raft::Versions> versions() const;
  [[nodiscard]] PeerTraffic counts() const;

 private:
  enum class Phase : std::uint8_t { waiting, connecting, handshake, open, closed };

  /// Begins a connection attempt.
  void connect();
  /// Continues the attempt with a connected socket.
  void start_handshake(net::OutgoingSocket& socket);
  void send_hello();
  void received(const ReceivedFrame& frame);
  void handle_welcome(const ReceivedFrame& frame);
  /// Ends the attempt, or repeats it with the oldest protocol version.
  void handle_refusal(const ReceivedFrame& frame);
  /// Starts the next write, unless one is in flight.
  void write_next();
  /// Queues a frame, or counts it as dropped.
  void push(Frame frame);
  /// Ends an attempt or a connection, and schedules the next attempt.
  void disconnected(const std::string& why);
  /// Closes the connection and drops the queued messages. Does not schedule an attempt.
  void close_connection();
  void schedule_reconnect();
  /// Fails the attempt with `what` unless its phase ends in time.
  void start_timeout(std::chrono::milliseconds timeouts, const char* what);
  /// Logs an event of this peer, unless it repeats the last one with the same error.
  void report(log::Level level, const std::string& event, const std::string& error = {});
  [[nodiscard]] bool is_stale(std::uint64_t attempt) const noexcept {
    return phase_ == Phase::closed || attempt != attempt_;
  }

  const std::shared_ptr<const PeerContext> context_;
  const raft::MemberId peer_;
  const std::string address_;

  Phase phase_ = Phase::waiting;
  std::uint64_t attempt_ =
      0;  ///< Number of the connection attempt; callbacks of earlier ones are ignored.
  std::shared_ptr<net::Connector> connector_;  ///< Connection attempt in progress; null: none.
  boost::asio::steady_timer timer_;
  /// Jittered delay of the next attempt.
  net::Backoff backoff_;
  /// Time of the last Welcome.
  std::chrono::steady_clock::time_point opened_{};
  std::shared_ptr<FramedConnection> connection_;
  /// Version of the next Hello: the newest, or the oldest after the peer has refused the newest.
  std::uint64_t protocol_ = newest_protocol;
  /// Last Hello; its nonce is part of both proofs.
  Hello hello_;
  raft::Versions versions_ = versions_before_3;  ///< Versions in the last Welcome.

  Outbox outbox_;
  SnapshotSender snapshots_;
  PeerTraffic counts_;
  std::pair<std::string, std::string> reported_;  ///< Last logged event and its error.
  /// Whether the last connection ended with a Refusal. A Refusal can follow the Welcome, so the
  /// next connection is logged as connected only after it has lasted for the longest backoff.
  bool is_refused_ = false;
};

}  // namespace tenure::server::peers
