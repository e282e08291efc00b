#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

#include "net/handshake_limiter.hpp"
#include "net/shares.hpp"
#include "server/http/client_stream.hpp"
#include "server/http/event_feed.hpp"
#include "server/http/message.hpp"
#include "server/http/router.hpp"
#include "server/http/server.hpp"

// Only server.cpp and connection.cpp may include this: Beast takes long to compile.
namespace tenure::server::http {

/// State shared by all connections. HTTP thread only.
struct ConnectionContext {
  const ServerOptions& options;
  const Router& router;
  EventFeed& feed;
  Metrics& metrics;
  boost::asio::ssl::context* tls = nullptr;  ///< TLS context; null: plain text.
  /// Shares of options.connections_max per address for connections, and per user for event streams.
  net::Shares connection_shares{net::Shares::three_quarters_of(options.connections_max)};
  net::Shares stream_shares{net::Shares::three_quarters_of(options.connections_max)};
  net::HandshakeLimiter handshakes{options.handshakes};
};

/// HTTP connection from accept to close: a sequence of requests, or one event stream. HTTP thread
/// only. Each state has a deadline, so an idle or slow client cannot occupy a connection forever.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  /// `place`: slot among the limited connections. Without one the connection gets a single
  /// response, 503 for every path except `/healthz` and `/readyz`.
  Connection(boost::asio::ip::tcp::socket socket, ConnectionContext& context,
             std::optional<net::Shares::Share> place);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void start();
  void close();

 private:
  using Error = boost::system::error_code;

  // Connection setup
  void open();
  void reject_overload();
  void detect_tls();
  /// Begins the TLS handshake, or closes the connection if a limit of handshakes is reached.
  void begin_handshake();
  void on_handshake(const Error& error);

  // Requests
  void wait_for_next();
  /// Reads until the next request starts or the client disconnects.
  void listen();
  void read();
  void on_read(const Error& error);
  void answer();
  /// Detects a disconnect while a request waits for its response.
  void watch_for_disconnect();
  void notify_disconnect();
  void respond(Response response);
  void respond_and_close(Response response);
  void shut_down();
  void drain();

  // Event streams
  void stream_events(Request& request);
  void write_stream(std::string text);
  void pump();
  void send_heartbeats();
  void watch_for_close();

  enum class OnTimeout : std::uint8_t { close, respond_unavailable, reject_overload };
  void arm_deadline(std::chrono::milliseconds time, OnTimeout action = OnTimeout::close);
  void disarm_deadline();
  void on_timeout(OnTimeout action);

  ClientStream stream_;
  ConnectionContext& context_;
  std::optional<net::Shares::Share>
      connection_slot_;                ///< None: over the limit; only health checks are served.
  bool is_overload_rejected_ = false;  ///< The 503 response is being written.
  net::Shares::Share stream_slot_;     ///< Share of the user's event streams.
  std::optional<net::Shares::Share>
      handshake_slot_;                    ///< Held while the TLS handshake is in progress.
  std::vector<std::string> certificate_;  ///< Names in the verified client certificate.
  boost::asio::steady_timer deadline_;
  boost::beast::flat_buffer buffer_;
  std::optional<boost::beast::http::request_parser<boost::beast::http::string_body>> parser_;
  std::uint64_t exchange_ =
      0;  ///< Number of the current request; a late response to an earlier one is dropped.
  std::shared_ptr<DisconnectHook>
      disconnect_hook_;  ///< Hook of the request that waits for its response.
  bool is_head_ = false;
  bool keeps_alive_ = false;
  bool is_listening_ = false;
  bool awaits_request_ = false;
  std::size_t drained_ = 0;

  std::shared_ptr<EventSubscription> events_;
  boost::asio::steady_timer heartbeat_;
  std::string outgoing_;
  bool is_writing_ = false;
  char ignored_ = 0;  ///< Receive buffer for the ignored input of an event stream.
};

}  // namespace tenure::server::http
