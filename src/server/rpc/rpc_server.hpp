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

struct RpcOptions {
  std::string address = "127.0.0.1:7420";    ///< Port 0: any free one.
  std::optional<net::ServerTlsFiles> tls{};  ///< None: plain text.
  std::size_t message_bytes_max = 64 * 1024;
  /// Bytes buffered for calls, responses and incomplete messages: of one connection, which is
  /// closed beyond that, and of all, of which then the largest is closed.
  std::size_t connection_bytes_max = std::size_t{64} << 20;
  std::size_t memory_bytes_max = std::size_t{512} << 20;
  std::size_t connections_max = 10'000;
  std::size_t calls_per_connection_max = 20'000;
  /// From the headers of a unary call to the end of its message.
  std::chrono::milliseconds request_time{10'000};
  grpc::Http2Connection::KeepAlive keep_alive{};
  /// Runs the handlers of connections, on the store's thread. Empty: the store's loop, which then
  /// serves clients and its own work in the order of arrival.
  boost::asio::any_io_executor executor{};
  RpcLimits limits{};
  std::string version{};  ///< For Status.
  auth::Authorizer* authorizer =
      nullptr;                  ///< Who may do what; outlives the server. Null: all everything.
  RpcContext::Reload reload{};  ///< What Admin.ReloadUsers calls; empty: the authorizer's.
  Metrics* metrics = nullptr;   ///< Where calls and watches are counted; outlives the server.
};

/// The gRPC side of the daemon: lock service, admin, health, reflection; all on the store's thread
/// (docs/decisions/0006).
class RpcServer {
 public:
  /// REQUIRES: the store has not been started, and outlives this.
  RpcServer(Store& store, RpcOptions options);
  ~RpcServer();
  RpcServer(const RpcServer&) = delete;
  RpcServer& operator=(const RpcServer&) = delete;

  /// Binds and serves; the port that it got. `unavailable` if the address cannot be bound.
  [[nodiscard]] Result<int> start();
  /// New connections use this context. REQUIRES: it serves, with TLS.
  void renew_tls(std::unique_ptr<boost::asio::ssl::context> context) {
    server_->renew_tls(std::move(context));
  }
  /// Refuses new calls, answers those who wait that the outcome is unknown (their places in the
  /// queues stay), ends the streams. The store must still run.
  void stop();

  [[nodiscard]] const RpcContext& context() const noexcept { return context_; }

 private:
  RpcContext context_;
  RpcOptions options_;
  LockService locks_;
  AdminService admin_;
  HealthService health_;
  grpc::ServerContext grpc_context_;
  std::shared_ptr<grpc::Server> server_;
};

}  // namespace tenure::server
