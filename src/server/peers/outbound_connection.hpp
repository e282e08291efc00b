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

/// The way to one peer: calls it, says who we are, writes messages, and calls again when the
/// connection is gone. Nothing comes back this way but how much of a snapshot has arrived.
///
///     waiting → connecting → greeting → open
///        ↑__________|___________|________|
///
/// All on the loop's thread.
class OutboundConnection : public std::enable_shared_from_this<OutboundConnection> {
 public:
  OutboundConnection(std::shared_ptr<const PeerContext> context, raft::MemberId peer,
                     std::string address);

  void start();
  /// Drops it if it cannot go.
  void send(raft::Message message);
  /// Whether send() would not drop a snapshot. One that is on its way goes on as one of this term,
  /// should that be newer.
  [[nodiscard]] bool takes_snapshot(raft::Term term);
  /// The peer has been heard of: a good moment to call, if we only wait for one.
  void connect_now();
  /// Nothing happens after it.
  void close();
  /// Once in a while: lets go of what does not get on.
  void sweep();

  [[nodiscard]] const std::string& address() const noexcept { return address_; }
  /// What the peer announced on the connection that is open; empty: none is.
  [[nodiscard]] std::optional<raft::Versions> versions() const;
  [[nodiscard]] PeerTraffic counts() const;

 private:
  enum class Phase : std::uint8_t { waiting, connecting, handshake, open, closed };

  void connect();
  void start_handshake(net::OutgoingSocket& socket);
  void send_hello();
  void received(const ReceivedFrame& frame);
  void handle_welcome(const ReceivedFrame& frame);
  void handle_refusal(const ReceivedFrame& frame);
  void write_next();
  void push(Frame frame);
  void disconnected(const std::string& why);
  void close_connection();
  void schedule_reconnect();
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
  std::uint64_t attempt_ = 0;                  ///< What belongs to an earlier one means nothing.
  std::shared_ptr<net::Connector> connector_;  ///< Null: no connection is being made.
  boost::asio::steady_timer timer_;
  net::Backoff backoff_;
  std::chrono::steady_clock::time_point opened_{};
  std::shared_ptr<FramedConnection> connection_;
  /// Version to greet with: the newest, and the oldest once after a peer has refused that.
  std::uint64_t protocol_ = newest_protocol;
  Hello hello_;
  raft::Versions versions_ = versions_before_3;  ///< As the Welcome has them.

  Outbox outbox_;
  SnapshotSender snapshots_;
  PeerTraffic counts_;
  std::pair<std::string, std::string> reported_;  ///< Last logged event and its error.
  /// The last connection ended with a refusal. The next one may end so, too, after the Welcome; it
  /// is reported when it has lasted.
  bool is_refused_ = false;
};

}  // namespace tenure::server::peers
