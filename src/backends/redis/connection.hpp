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

/// One thing that is said at the beginning of a connection, and what is thought of the answer.
struct HandshakeStep {
  std::string command{};
  std::function<Result<void>(const Reply&)> check{};
};

/// A connection to one server that makes itself anew when it is lost, after a pause that grows. Who
/// we are, and whether that server will do, is settled before it is ready. Knows nothing of locks.
/// All on the loop's thread.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  struct Callbacks {
    /// It stands. What was sent on the last one and is not answered never will be.
    std::function<void()> ready;
    /// What was sent is answered in that order; messages of a channel come in between.
    std::function<void(const Reply&)> replied;
    /// It is lost, or could not be made. It is tried again.
    std::function<void(const Error&)> failed;
  };

  /// `extra_steps`: what is to be said after HELLO and SELECT.
  Connection(boost::asio::io_context& loop, ServerOptions server,
             std::vector<HandshakeStep> extra_steps, Callbacks callbacks);

  void connect();
  [[nodiscard]] bool is_ready() const noexcept { return is_ready_; }
  /// "127.0.0.1:6379"
  [[nodiscard]] const std::string& where() const noexcept { return where_; }

  /// Queues an encoded command for the next flush(). REQUIRES: is_ready().
  void send(std::string_view command);
  /// Writes what is queued. While replies are dispatched, the write follows the last of them.
  void flush();
  /// Gives this connection up for another one.
  void drop(const Error& why);
  /// The server is there now, by what somebody says who knows: if we are elsewhere, we go.
  void move_to(const Endpoint& endpoint);
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

  boost::asio::io_context& loop_;
  const ServerOptions server_;
  const std::chrono::milliseconds silence_max_;  ///< While an answer is due.
  Endpoint endpoint_;                            ///< At which it is, or is being socket_opened.
  std::string where_;
  const std::vector<HandshakeStep> extra_steps_;
  Callbacks callbacks_;
  std::shared_ptr<net::Connector> connector_;     ///< Null: no connection is being made.
  net::Connector::Clock::time_point deadline_{};  ///< End of the current attempt.
  net::Backoff backoff_;
  boost::asio::steady_timer backoff_timer_;
  boost::asio::steady_timer timeout_timer_;

  std::shared_ptr<net::Transport> transport_;
  std::unique_ptr<ReplyReader> reader_;
  std::vector<HandshakeStep> handshake_;
  std::size_t handshake_replies_ = 0;  ///< Steps that were answered.
  std::string unsent_;                 ///< To be written,
  std::string writing_;                ///< and being written.
  std::size_t unanswered_ = 0;
  std::string id_;           ///< By which the server knows this connection.
  std::string own_address_;  ///< Our end of it, as the server sees it.
  struct Abandoned {
    Endpoint endpoint;
    std::string id;
    std::string address;
  };
  std::optional<Abandoned> abandoned_;  ///< By us, with something unanswered: the next one ends it.
  bool is_silence_checked_ = false;     ///< The timeout runs.
  bool has_received_ = false;           ///< Something received since it was last looked at.
  bool is_writing_ = false;
  bool is_dispatching_ = false;  ///< Replies are being passed to the owner.
  bool is_ready_ = false;
  bool is_connecting_ = false;
  bool is_backing_off_ = false;  ///< Before it dials,
  bool is_resolving_ = false;    ///< and asks where.
  bool is_stopped_ = false;
  bool has_failed_ = false;  ///< The last connection failed: the next attempt is delayed.
  std::size_t attempt_ = 0;  ///< What comes from an older one is ignored.
};

}  // namespace tenure::backends::redis
