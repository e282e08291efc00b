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

/// One who called us: finds out who it is, then takes messages from it. All on the loop's thread.
class InboundConnection : public std::enable_shared_from_this<InboundConnection> {
 public:
  /// None of them is called after close().
  struct Events {
    std::function<void(InboundConnection&)> authenticated;  ///< It has shown who it is.
    /// A frame from one who was admitted.
    std::function<void(InboundConnection&, const ReceivedFrame&)> received;
    /// It is told why it cannot stay, and will be gone soon.
    std::function<void(InboundConnection&)> rejected;
    /// It is gone. The last call.
    std::function<void(InboundConnection&)> closed;
  };

  InboundConnection(std::shared_ptr<const PeerContext> context, boost::asio::ip::tcp::socket socket,
                    std::string from);

  /// Keeps the slot of the TLS handshake until the handshake ends. REQUIRES: before start().
  void hold_handshake_slot(net::Shares::Share slot) { handshake_slot_ = std::move(slot); }
  void start(Events events);
  /// Says how much of a snapshot has arrived; only the last word counts.
  void acknowledge(const SnapshotHave& have);
  /// It is gone for us, and why. For a frame that makes no sense.
  void fail(const std::string& why);
  void close();
  [[nodiscard]] bool is_closed() const noexcept { return is_closed_; }

  /// Who it is and where it can be called back; once admitted.
  [[nodiscard]] const Hello& hello() const noexcept { return hello_; }
  [[nodiscard]] bool is_authenticated() const noexcept { return phase_ == Phase::authenticated; }
  [[nodiscard]] const std::string& from() const noexcept { return from_; }
  [[nodiscard]] std::uint64_t bytes_read() const noexcept { return connection_->bytes_read(); }
  /// Why it went, if there was a reason worth telling.
  [[nodiscard]] const std::string& error() const noexcept { return error_; }

 private:
  enum class Phase : std::uint8_t { hello, proof, authenticated, rejected };

  void received(const ReceivedFrame& frame);
  void take_hello(const ReceivedFrame& frame);
  void take_proof(const ReceivedFrame& frame);
  void written();
  void reject(Refusal refusal);
  void finish();

  const std::shared_ptr<const PeerContext> context_;
  const std::string from_;
  boost::asio::steady_timer timer_;
  std::shared_ptr<FramedConnection> connection_;
  net::Shares::Share handshake_slot_;
  Events events_;
  Phase phase_ = Phase::hello;
  Hello hello_;
  std::string expected_proof_;
  std::optional<SnapshotHave> have_;  ///< To be said,
  std::optional<Refusal> refusal_;    ///< and this too.
  std::string error_;
  bool is_closed_ = false;
};

}  // namespace tenure::server::peers
