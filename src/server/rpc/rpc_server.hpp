#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include <boost/asio/any_io_executor.hpp>

#include <tenure/error.hpp>

#include "grpc/server.hpp"
#include "server/rpc/admin_service.hpp"
#include "server/rpc/health_service.hpp"
#include "server/rpc/lock_service.hpp"
#include "server/rpc/rpc_context.hpp"
#include "server/store/store.hpp"

namespace tenure::server {

/// Options of RpcServer. main.cpp fills them from the configuration.
struct RpcOptions {
  std::string address = "127.0.0.1:7420";    ///< Port 0: any free port.
  std::optional<net::ServerTlsFiles> tls{};  ///< Certificate files; nullopt: plain text.
  /// Maximum size of one request message.
  std::size_t message_bytes_max = 64 * 1024;
  /// Bytes buffered for calls, responses and incomplete messages, per connection and in total. A
  /// connection over its limit is closed; over the total, the largest is closed.
  std::size_t connection_bytes_max = std::size_t{64} << 20;
  std::size_t memory_bytes_max = std::size_t{512} << 20;
  /// Further connections are closed at once.
  std::size_t connections_max = 10'000;
  /// Concurrent calls; HTTP/2 MAX_CONCURRENT_STREAMS.
  std::size_t calls_per_connection_max = 20'000;
  /// Time from the headers of a unary call to the end of its message.
  std::chrono::milliseconds request_time{10'000};
  grpc::Http2Connection::KeepAlive keep_alive{};
  /// Runs connection handlers on the store's thread. Empty: the store's loop, which then runs
  /// clients and its own work in arrival order.
  boost::asio::any_io_executor executor{};
  RpcLimits limits{};
  std::string version{};                   ///< Version in replies of Admin.Status.
  auth::Authorizer* authorizer = nullptr;  ///< Authorizer; outlives the server. Null: no users.
  RpcContext::Reload
      reload{};  ///< Implementation of Admin.ReloadUsers; empty: reloads the authorizer.
  Metrics* metrics = nullptr;  ///< Metrics; outlives the server. Null: nothing is counted.
};

/// gRPC server of the daemon: LockService, Admin, health and reflection. Runs on the store's thread
/// (docs/decisions/0006).
class RpcServer {
 public:
  /// REQUIRES: the store has not been started, and outlives this.
  RpcServer(Store& store, RpcOptions options);
  ~RpcServer();
  RpcServer(const RpcServer&) = delete;
  RpcServer& operator=(const RpcServer&) = delete;

  /// Binds and serves; returns the port. `unavailable`: the address cannot be bound.
  [[nodiscard]] Result<int> start();
  /// Installs a TLS context for new connections. REQUIRES: started, with TLS.
  void renew_tls(std::unique_ptr<boost::asio::ssl::context> context) {
    server_->renew_tls(std::move(context));
  }
  /// Rejects new calls, completes waiting calls with an unknown outcome (their queue positions
  /// stay), and ends the streams. REQUIRES: the store runs.
  void stop();

  /// Shared context, for tests. Store thread only while the server runs.
  [[nodiscard]] const RpcContext& context() const noexcept { return context_; }

 private:
  /// Declared first: the services refer to it.
  RpcContext context_;
  RpcOptions options_;
  LockService locks_;
  AdminService admin_;
  HealthService health_;
  grpc::ServerContext grpc_context_;
  /// Null before start() and after stop().
  std::shared_ptr<grpc::Server> server_;
};

}  // namespace tenure::server
