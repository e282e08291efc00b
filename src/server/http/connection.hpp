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
/// Owned by Server::Core and destroyed after the last connection.
struct ConnectionContext {
  const ServerOptions& options;
  const Router& router;
  EventFeed& feed;
  Metrics& metrics;
  boost::asio::ssl::context* tls = nullptr;  ///< TLS context; null: plain text.
  /// Shares of options.connections_max per address for connections, and per user for event streams.
  /// Three quarters leave room for other clients and for operators when one client misbehaves.
  net::Shares connection_shares{net::Shares::three_quarters_of(options.connections_max)};
  net::Shares stream_shares{net::Shares::three_quarters_of(options.connections_max)};
  /// Handshakes run asymmetric cryptography on this thread, which costs far more than a request.
  net::HandshakeLimiter handshakes{options.handshakes};
};

/// HTTP connection from accept to close: a sequence of requests, or one event stream. HTTP thread
/// only. Each state has a deadline, so an idle or slow client cannot occupy a connection forever.
///
/// State machine driven by Asio handlers:
///
///     [detect_tls → handshake →] read → answer → respond → wait_for_next → read …
///                                          └→ stream_events (until close)
///
/// Pending reads, writes and the deadline hold a shared_ptr, so the connection lives until its last
/// operation has ended. Callbacks of the router, the feed and the heartbeat hold a weak_ptr: they
/// must not keep a closed connection alive.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  /// `place`: slot among the limited connections. Without one the connection gets a single
  /// response, 503 for every path except `/healthz` and `/readyz`.
  Connection(boost::asio::ip::tcp::socket socket, ConnectionContext& context,
             std::optional<net::Shares::Share> place);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// Starts the first operation. REQUIRES: owned by a shared_ptr; called once.
  void start();
  /// Closes the socket, which cancels all pending operations. Idempotent. Also reports the
  /// disconnect to a waiting request and returns all shares to their limits.
  void close();

 private:
  using Error = boost::system::error_code;

  // Connection setup
  /// Reads the first request. A connection over the limit gets a shorter deadline.
  void open();
  /// Sends the 503 response of a connection over the limit and closes it.
  void reject_overload();
  /// Peeks at the first byte, so that a client that speaks plain HTTP to the TLS port gets a
  /// readable error instead of a closed connection.
  void detect_tls();
  /// Begins the TLS handshake, or closes the connection if a limit of handshakes is reached.
  void begin_handshake();
  /// Takes the names from the client certificate, then reads the first request.
  void on_handshake(const Error& error);

  // Requests
  /// Starts the idle period between two requests of a connection.
  void wait_for_next();
  /// Reads until the next request starts or the client disconnects.
  void listen();
  void read();
  void on_read(const Error& error);
  /// Validates the request and passes it to the router. The Host header is checked first, so that a
  /// page of a foreign origin learns nothing about the paths.
  void answer();
  /// Detects a disconnect while a request waits for its response.
  void watch_for_disconnect();
  /// Calls the hook of the waiting request at most once.
  void notify_disconnect();
  /// Writes the response and ends the current exchange: from here on, replies to it are dropped.
  void respond(Response response);
  void respond_and_close(Response response);
  /// Closes gracefully: TLS close_notify, end of the sending direction, then drain().
  void shut_down();
  /// Reads and discards input until the client closes the connection or a limit is reached.
  void drain();

  // Event streams
  /// Turns the connection into an event stream. It never returns to requests.
  void stream_events(Request& request);
  /// REQUIRES: no write in progress.
  void write_stream(std::string text);
  /// Writes the next chunk of pending events unless a write is in progress. Called when the feed
  /// has text, and after each write; the two together keep exactly one write in flight.
  void pump();
  /// Writes a comment line in each interval, so that proxies keep an idle stream open and a dead
  /// client is detected by a failed write.
  void send_heartbeats();
  /// Reads and ignores input of an event stream; the end of the input closes the connection.
  void watch_for_close();

  /// Action when the deadline of the current state passes.
  enum class OnTimeout : std::uint8_t { close, respond_unavailable, reject_overload };
  /// Replaces the current deadline: a connection has exactly one.
  void arm_deadline(std::chrono::milliseconds time, OnTimeout action = OnTimeout::close);
  void disarm_deadline();
  /// `respond_unavailable` answers 503 and keeps the connection: the client did nothing wrong.
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
  /// Input not yet parsed; contains the start of the next request if the client pipelines.
  boost::beast::flat_buffer buffer_;
  /// Parser of the current request. A parser cannot be reused, so each request gets a new one.
  std::optional<boost::beast::http::request_parser<boost::beast::http::string_body>> parser_;
  std::uint64_t exchange_ =
      0;  ///< Number of the current request; a late response to an earlier one is dropped.
  std::shared_ptr<DisconnectHook>
      disconnect_hook_;  ///< Hook of the request that waits for its response.
  /// The current request is HEAD: the response has headers only.
  bool is_head_ = false;
  /// The connection stays open after the current response.
  bool keeps_alive_ = false;
  /// A read that only detects input or the end of input is pending.
  bool is_listening_ = false;
  /// Input that listen() receives starts the next request.
  bool awaits_request_ = false;
  /// Bytes discarded by drain().
  std::size_t drained_ = 0;

  /// Subscription of an event stream; null: the connection serves requests.
  std::shared_ptr<EventSubscription> events_;
  /// Timer of send_heartbeats().
  boost::asio::steady_timer heartbeat_;
  /// Text of the write in progress; Asio refers to it until the write ends.
  std::string outgoing_;
  /// A write of the event stream is in progress. Two concurrent writes would interleave their
  /// bytes.
  bool is_writing_ = false;
  char ignored_ = 0;  ///< Receive buffer for the ignored input of an event stream.
};

}  // namespace tenure::server::http
