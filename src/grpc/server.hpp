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
  std::uint16_t port = 0;                    ///< 0: any free one.
  std::optional<net::ServerTlsFiles> tls{};  ///< None: plain text.
  std::size_t connections_max = 10'000;
  std::function<void()> on_connection_rejected = [] {
  };                                           ///< Called for each connection beyond that.
  net::HandshakeLimiter::Limits handshakes{};  ///< With TLS; more are closed at once.
};

/// Accepts connections and serves calls on them, all on the thread of the loop but for the
/// handshakes of TLS, which a thread of its own computes. Without a limit on connections a flood of
/// them would take all descriptors, also those of the log; one address gets three quarters of them.
class Server : public std::enable_shared_from_this<Server> {
 public:
  Server(ServerContext& context, ServerOptions options);

  /// Binds; the port it got. `unavailable` says why not.
  [[nodiscard]] Result<std::uint16_t> listen();
  /// REQUIRES: listen() succeeded. On any thread.
  void open();
  /// New connections use this context; those that are open stay. On any thread.
  void renew_tls(std::unique_ptr<boost::asio::ssl::context> context);
  /// No more connections from now on. Waits until the loop has seen it. Idempotent.
  void stop_accepting();
  /// Ends all calls and connections, at the latest after `timeout`. Waits for it.
  /// REQUIRES: stop_accepting(), not on the loop's thread, and the loop runs.
  void stop(std::chrono::milliseconds timeout);

 private:
  void accept();
  void admit(boost::asio::ip::tcp::socket socket);
  void check_soon();
  void drain_connections(std::chrono::milliseconds timeout, std::function<void()> done);
  void done_if_empty();

  ServerContext& context_;
  ServerOptions options_;
  std::unique_ptr<boost::asio::ssl::context> tls_;
  std::optional<boost::asio::thread_pool> handshakes_;  ///< With TLS.
  net::HandshakeLimiter limiter_;
  net::Shares shares_;
  boost::asio::ip::tcp::acceptor acceptor_;
  boost::asio::steady_timer timer_;
  absl::flat_hash_set<std::shared_ptr<Connection>> connections_;
  std::function<void()> on_empty_;
  bool is_accepting_stopped_ = false;
};

}  // namespace tenure::grpc
