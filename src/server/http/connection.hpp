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
#include "server/http/event_feed.hpp"
#include "server/http/message.hpp"
#include "server/http/router.hpp"
#include "server/http/server.hpp"
#include "server/http/wire.hpp"

// Only server.cpp and connection.cpp may include this: Beast takes long to compile.
namespace tenure::server::http {

/// What all connections share. All of it at home.
struct Surroundings {
  const ServerOptions& options;
  const Router& router;
  EventFeed& feed;
  Metrics& metrics;
  boost::asio::ssl::context* tls = nullptr;  ///< Null: plain text.
  /// Of options.connections_max: what each address has of the connections, and each user of the
  /// event streams.
  net::Shares places{net::Shares::three_quarters_of(options.connections_max)};
  net::Shares streams{net::Shares::three_quarters_of(options.connections_max)};
  net::HandshakeLimiter handshakes{options.handshakes};
};

/// One client, from accept to close: request after request, or one stream of events. At home.
/// Every state has a deadline, so nobody can hold on to a connection without taking part.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  /// `place`: among the connections that are served. Without one there are too many: it gets one
  /// answer, which is 503 for all but `/healthz` and `/readyz`.
  Connection(boost::asio::ip::tcp::socket socket, Surroundings& around,
             std::optional<net::Shares::Share> place);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void start();
  void close();

 private:
  using Error = boost::system::error_code;

  // The beginning.
  void open();
  void turn_away();
  void greet();
  /// Begins the TLS handshake, or closes the connection if a limit of handshakes is reached.
  void shake_hands();
  void on_greeted(const Error& error);

  // Requests.
  void wait_for_next();
  /// Reads what comes first: the next request, or that who asked has gone.
  void listen();
  void read();
  void on_read(const Error& error);
  void answer();
  /// Who asked and waits may go away meanwhile.
  void watch_for_departure();
  void tell_departure();
  void respond(Response response);
  void respond_and_close(Response response);
  void say_goodbye();
  void drain();

  // Event streams.
  void stream_events(Request& request);
  void write_stream(std::string text);
  void pump();
  void beat();
  void watch_for_close();

  enum class Late : std::uint8_t { close, answer, turn_away };
  void arm(std::chrono::milliseconds time, Late late = Late::close);
  void disarm();
  void on_late(Late late);

  Wire wire_;
  Surroundings& around_;
  std::optional<net::Shares::Share> place_;  ///< None: it is turned away, but for health.
  bool is_turned_away_ = false;              ///< Its 503 is on the way.
  net::Shares::Share stream_;                ///< Of its user, while it gets events.
  std::optional<net::Shares::Share>
      handshake_slot_;                    ///< Held while the TLS handshake is in progress.
  std::vector<std::string> certificate_;  ///< The names in the one that was shown.
  boost::asio::steady_timer deadline_;
  boost::beast::flat_buffer buffer_;
  std::optional<boost::beast::http::request_parser<boost::beast::http::string_body>> parser_;
  std::uint64_t exchange_ = 0;  ///< Counts requests: an answer that comes too late is not for this.
  std::shared_ptr<Departure> departure_;  ///< Of the request that waits for its answer.
  bool is_head_ = false;
  bool keeps_alive_ = false;
  bool is_listening_ = false;
  bool awaits_request_ = false;
  std::size_t drained_ = 0;

  std::shared_ptr<EventSubscription> events_;
  boost::asio::steady_timer heartbeat_;
  std::string outgoing_;
  bool is_writing_ = false;
  char ignored_ = 0;  ///< What a reader of events says is not listened to.
};

}  // namespace tenure::server::http
