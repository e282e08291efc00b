#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include <tenure/error.hpp>

#include "server/rpc/desk.hpp"
#include "server/rpc/doorkeeper.hpp"
#include "server/store.hpp"

namespace grpc {
class Server;
namespace experimental {
class ExternalConnectionAcceptor;
}
}  // namespace grpc

namespace tenure::server {

/// Certificates as PEM text.
struct TlsFiles {
  std::string certificate{};  ///< Of this server, with its chain.
  std::string key{};
  std::string client_ca{};  ///< Not empty: clients show a certificate that this one signed.
};

struct RpcOptions {
  std::string address = "127.0.0.1:7420";  ///< Port 0: any free one.
  std::optional<TlsFiles> tls{};           ///< None: plain text.
  std::size_t message_bytes_max = 64 * 1024;
  /// For what gRPC buffers of all connections; it pushes back beyond.
  std::size_t memory_bytes_max = std::size_t{512} * 1024 * 1024;
  std::size_t connections_max = 10'000;
  std::size_t calls_per_connection_max = 20'000;
  RpcLimits limits{};
  std::string version{};       ///< For Status.
  Metrics* metrics = nullptr;  ///< Where watches are counted; outlives the server.
};

/// The gRPC side of the daemon: lock service, admin, health, reflection.
class RpcServer {
 public:
  /// REQUIRES: the store has not been started, and outlives this.
  RpcServer(Store& store, RpcOptions options);
  ~RpcServer();
  RpcServer(const RpcServer&) = delete;
  RpcServer& operator=(const RpcServer&) = delete;

  /// Binds and serves; the port that it got. `unavailable` if the address cannot be bound.
  [[nodiscard]] Result<int> start();
  /// Refuses new calls, answers those who wait that the outcome is unknown (their places in the
  /// queues stay), ends the streams. The store must still run.
  void stop();

  [[nodiscard]] const Desk& desk() const noexcept { return desk_; }

 private:
  class Services;
  class Health;

  Desk desk_;
  RpcOptions options_;
  std::unique_ptr<Services> services_;
  std::unique_ptr<Health> health_;
  std::shared_ptr<Doorkeeper> door_;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace tenure::server
