#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <tenure/error.hpp>

#include "backends/redis/reply.hpp"
#include "backends/redis/server_options.hpp"
#include "net/backoff.hpp"
#include "net/connector.hpp"
#include "net/outgoing_socket.hpp"
#include "net/transport.hpp"

namespace tenure::backends::redis {

/// One command of the handshake, and the check of its reply.
struct HandshakeStep {
  /// Command in wire format (RESP2).
  std::string command{};
  /// Accepts or rejects the reply. Null: any reply but an error is accepted.
  std::function<Result<void>(const Reply&)> check{};
};

/// Reconnecting connection to one Redis server.
///
/// Resolves the endpoint, connects, performs the TLS and Redis handshake (HELLO, AUTH, SELECT,
/// checks of version, mode and role), and reconnects with exponential backoff after a failure.
/// Declares the server dead if a reply is due and nothing arrives for silence_max_, whatever TCP
/// reports.
///
/// Commands are written in the order of send(); replies are delivered in that order. After a
/// reconnect no reply to an earlier command arrives; resending is the owner's task (Pipeline). Runs
/// on the loop's thread.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  /// Events for the owner of the connection.
  struct Callbacks {
    /// Connected. Commands outstanding on the previous connection will not be answered.
    std::function<void()> ready;
    /// Next reply in the order of the commands, or a published message between two replies.
    std::function<void(const Reply&)> replied;
    /// Connection lost, or could not be made. Another attempt follows.
    std::function<void(const Error&)> failed;
  };

  /// `extra_steps`: handshake steps after HELLO and SELECT.
  Connection(boost::asio::io_context& loop, ServerOptions server,
             std::vector<HandshakeStep> extra_steps, Callbacks callbacks);

  /// Starts connecting, after the backoff delay if the last connection failed.
  void connect();
  /// The handshake is complete.
  [[nodiscard]] bool is_ready() const noexcept { return is_ready_; }
  /// Endpoint for error messages, such as "127.0.0.1:6379".
  [[nodiscard]] const std::string& where() const noexcept { return where_; }

  /// Queues an encoded command for the next flush(). REQUIRES: is_ready().
  void send(std::string_view command);
  /// Writes what is queued. While replies are dispatched, the write follows the last of them.
  void flush();
  /// Abandons the connection and reconnects. If replies are outstanding, the next connection to the
  /// same server kills this one, because its commands may still be on the way and will be resent.
  void drop(const Error& why);
  /// The server is at this endpoint now: reconnects if this connection uses another one.
  void move_to(const Endpoint& endpoint);
  /// Closes the connection. No callback is called any more.
  void stop();

 private:
  void connect_now();
  void resolved(const Result<Endpoint>& endpoint);
  void open_socket();
  void socket_opened(net::OutgoingSocket& socket);
  void start_handshake();
  void read();
  void received(std::span<const std::uint8_t> bytes);
  void handle(const Reply& reply);
  void check_handshake(const Reply& reply);
  void write();
  void check_silence();
  void close();
  void failed(const Error& why);
  [[nodiscard]] Error unavailable(const std::string& why) const;
  [[nodiscard]] Error socket_error(const boost::system::error_code& error) const;
  [[nodiscard]] Result<void> check_hello(const Reply& reply);
  [[nodiscard]] Result<void> check_mode(std::string_view mode) const;
  [[nodiscard]] std::vector<HandshakeStep> handshake_steps();

  /// Event loop that runs all handlers.
  boost::asio::io_context& loop_;
  /// Endpoint, credentials and timeouts.
  const ServerOptions server_;
  /// Longest time without any bytes while a reply is due.
  const std::chrono::milliseconds silence_max_;
  /// Current endpoint, as resolved for the last attempt.
  Endpoint endpoint_;
  /// Name of the endpoint for error messages.
  std::string where_;
  /// Handshake steps of the owner.
  const std::vector<HandshakeStep> extra_steps_;
  /// Callbacks of the owner.
  Callbacks callbacks_;
  /// Connection attempt in progress; null: none.
  std::shared_ptr<net::Connector> connector_;
  /// End of the current attempt.
  net::Connector::Clock::time_point deadline_{};
  /// Delays between failed attempts.
  net::Backoff backoff_;
  /// Timer of that delay.
  boost::asio::steady_timer backoff_timer_;
  /// Timer of the current attempt; afterwards of check_silence().
  boost::asio::steady_timer timeout_timer_;

  /// Open socket, plain or TLS; null: not connected.
  std::shared_ptr<net::Transport> transport_;
  /// Parser of the current connection's replies.
  std::unique_ptr<ReplyReader> reader_;
  /// Steps of the current handshake.
  std::vector<HandshakeStep> handshake_;
  /// Number of handshake steps that have been answered.
  std::size_t handshake_replies_ = 0;
  /// Bytes queued for the next write.
  std::string unsent_;
  /// Bytes of the write in progress.
  std::string writing_;
  /// Number of commands sent without a reply.
  std::size_t unanswered_ = 0;
  /// Client id of this connection on the server.
  std::string id_;
  /// Local address of this connection as the server reports it.
  std::string own_address_;
  /// Identity of a connection that was dropped with outstanding replies.
  struct Abandoned {
    Endpoint endpoint;
    std::string id;
    std::string address;
  };
  /// Dropped connection that the next handshake kills.
  std::optional<Abandoned> abandoned_;
  /// check_silence() has a timer running.
  bool is_silence_checked_ = false;
  /// Bytes have arrived since the timer was started.
  bool has_received_ = false;
  /// A write is in progress.
  bool is_writing_ = false;
  /// Replies are being delivered to the owner.
  bool is_dispatching_ = false;
  /// The handshake is complete.
  bool is_ready_ = false;
  /// An attempt is in progress or scheduled.
  bool is_connecting_ = false;
  /// The attempt waits for the backoff delay.
  bool is_backing_off_ = false;
  /// The attempt waits for the resolver.
  bool is_resolving_ = false;
  /// stop() was called.
  bool is_stopped_ = false;
  /// The last connection failed, so the next attempt is delayed.
  bool has_failed_ = false;
  /// Number of the current attempt; events of older attempts are ignored.
  std::size_t attempt_ = 0;
};

}  // namespace tenure::backends::redis
