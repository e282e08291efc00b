#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <absl/container/flat_hash_set.h>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>

#include <tenure/error.hpp>

#include "grpc/connection.hpp"
#include "net/handshake_limiter.hpp"
#include "net/shares.hpp"
#include "net/tls_context.hpp"

namespace tenure::grpc {

struct ServerOptions {
  std::string host = "127.0.0.1";
  std::uint16_t port = 0;                    ///< 0: any free port.
  std::optional<net::ServerTlsFiles> tls{};  ///< Certificate files; nullopt: plain text.
  std::size_t connections_max = 10'000;
  std::function<void()> on_connection_rejected = [] {
  };  ///< Called for each connection over the limit.
  net::HandshakeLimiter::Limits
      handshakes{};  ///< TLS handshake limits; connections over them are closed at once.
};

/// gRPC server: accepts connections and runs their calls on the loop's thread; TLS handshakes are
/// computed on a separate thread. The connection limit keeps file descriptors available, also for
/// the log. One address gets three quarters of the connections.
///
/// Sequence: listen(), open(), stop_accepting(), stop(). Between the last two, open calls can still
/// be answered, so their clients learn the outcome or the reason.
class Server : public std::enable_shared_from_this<Server> {
 public:
  Server(ServerContext& context, ServerOptions options);

  /// Binds and returns the port. `unavailable`: the address cannot be bound.
  [[nodiscard]] Result<std::uint16_t> listen();
  /// Starts accepting. REQUIRES: listen() succeeded. Any thread.
  void open();
  /// Installs a TLS context for new connections; open ones keep theirs. Any thread.
  void renew_tls(std::unique_ptr<boost::asio::ssl::context> context);
  /// Stops accepting connections. Blocks until the loop has done so. Idempotent.
  void stop_accepting();
  /// Drains all connections and closes the rest after `timeout`. Blocks until done. REQUIRES:
  /// stop_accepting(); not on the loop's thread; the loop runs.
  void stop(std::chrono::milliseconds timeout);

 private:
  /// Accepts connections one after the other until stop_accepting().
  void accept();
  /// Opens a connection for an accepted socket, or closes it if a limit is reached.
  void admit(boost::asio::ip::tcp::socket socket);
  /// Checks keep-alives and request deadlines at intervals. One timer for all connections is
  /// cheaper than one each.
  void check_soon();
  void drain_connections(std::chrono::milliseconds timeout, std::function<void()> done);
  /// Completes stop() when the last connection is closed.
  void done_if_empty();

  ServerContext& context_;
  ServerOptions options_;
  /// Context of new connections; null: plain text.
  std::unique_ptr<boost::asio::ssl::context> tls_;
  std::optional<boost::asio::thread_pool> handshakes_;  ///< Computes TLS handshakes.
  net::HandshakeLimiter limiter_;
  /// Connections per client address.
  net::Shares shares_;
  boost::asio::ip::tcp::acceptor acceptor_;
  boost::asio::steady_timer timer_;
  absl::flat_hash_set<std::shared_ptr<Connection>> connections_;
  /// Completion of drain_connections(); empty: not draining.
  std::function<void()> on_empty_;
  bool is_accepting_stopped_ = false;
};

}  // namespace tenure::grpc
