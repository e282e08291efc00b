#include "server/rpc/rpc_server.hpp"

#include <atomic>
#include <chrono>
#include <future>
#include <utility>

#include <absl/synchronization/mutex.h>
#include <boost/asio/post.hpp>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include "server/rpc/admin_service.hpp"
#include "server/rpc/lock_service.hpp"
#include "sys/log.hpp"

namespace tenure::server {
namespace {

/// How long streams may go on after the server was told to stop.
constexpr std::chrono::milliseconds farewell_max{500};
/// Whoever answers no ping within `ping_wait` is gone, though no FIN came.
constexpr int ping_every_ms = 10'000;
constexpr int ping_wait_ms = 5'000;
constexpr int client_ping_min_ms = 5'000;

std::shared_ptr<grpc::ServerCredentials> credentials_of(const std::optional<TlsFiles>& tls) {
  if (!tls) {
    return grpc::InsecureServerCredentials();
  }
  grpc::SslServerCredentialsOptions options(
      tls->client_ca.empty() ? GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE
                             : GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  options.pem_root_certs = tls->client_ca;
  options.pem_key_cert_pairs.push_back({tls->key, tls->certificate});
  return grpc::SslServerCredentials(options);
}

void set_arguments(const RpcOptions& options, grpc::ServerBuilder& builder) {
  builder.SetMaxReceiveMessageSize(static_cast<int>(options.message_bytes_max));
  grpc::ResourceQuota quota("tenured");
  quota.Resize(options.memory_bytes_max);
  builder.SetResourceQuota(quota);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS,
                             static_cast<int>(options.calls_per_connection_max));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, ping_every_ms);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, ping_wait_ms);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                             client_ping_min_ms);
}

}  // namespace

class RpcServer::Services {
 public:
  explicit Services(Desk& desk) : lock_(desk), admin_(desk) {}

  void add_to(grpc::ServerBuilder& builder) {
    builder.RegisterService(&lock_);
    builder.RegisterService(&admin_);
  }

 private:
  LockService lock_;
  AdminService admin_;
};

/// Serving while this member leads.
class RpcServer::Health final : public Listener {
 public:
  void role_changed(const LogPosition& log) override {
    is_leader_ = log.is_leader;
    tell();
  }
  void serve(grpc::HealthCheckServiceInterface* service) {
    service_ = service;
    tell();
  }

 private:
  void tell() {
    if (auto* service = service_.load()) {
      for (const auto* name : {"", "tenure.v1.LockService", "tenure.v1.Admin"}) {
        service->SetServingStatus(name, is_leader_);
      }
    }
  }

  std::atomic<bool> is_leader_ = false;
  std::atomic<grpc::HealthCheckServiceInterface*> service_ = nullptr;
};

RpcServer::RpcServer(Store& store, RpcOptions options)
    : desk_{.store = store,
            .limits = options.limits,
            .version = options.version,
            .watches = WatchHub(options.metrics)},
      options_(std::move(options)),
      services_(std::make_unique<Services>(desk_)),
      health_(std::make_unique<Health>()) {
  store.listen(desk_.callers);
  store.listen(desk_.watches);
  store.listen(*health_);
}

RpcServer::~RpcServer() {
  stop();
}

Result<int> RpcServer::start() {
  door_ = std::make_shared<Doorkeeper>(
      desk_.store.loop(), Doorkeeper::Rules{.connections_max = options_.connections_max,
                                            .turned_away = [metrics = options_.metrics] {
                                              log::warning("connection_refused",
                                                           {{"limit", "service.connections_max"}});
                                              if (metrics != nullptr) {
                                                metrics->limit_rejected("connections_max");
                                              }
                                            }});
  const auto port = door_->listen(options_.address);
  if (!port) {
    return std::unexpected(port.error());
  }
  // Debian builds Abseil with its checks for debug builds: every mutex of gRPC enters itself into a
  // global graph of lock orders, under a global lock.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  grpc::ServerBuilder builder;
  set_arguments(options_, builder);
  acceptor_ = builder.experimental().AddExternalConnectionAcceptor(
      grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD,
      credentials_of(options_.tls));
  services_->add_to(builder);
  server_ = builder.BuildAndStart();
  if (!server_) {
    return fail(Errc::unavailable, "gRPC does not start: is the certificate the key's, and PEM?");
  }
  health_->serve(server_->GetHealthCheckService());
  door_->open([this](int listener, int connection) {
    grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters parameters;
    parameters.listener_fd = listener;
    parameters.fd = connection;
    acceptor_->HandleNewConnection(&parameters);
  });
  return *port;
}

void RpcServer::stop() {
  if (!server_) {
    return;
  }
  desk_.is_stopping = true;
  door_->close();
  health_->serve(nullptr);
  server_->GetHealthCheckService()->SetServingStatus(false);
  std::promise<void> dismissed;
  boost::asio::post(desk_.store.loop(), [&] {
    desk_.callers.dismiss();
    dismissed.set_value();
  });
  dismissed.get_future().wait();
  server_->Shutdown(std::chrono::system_clock::now() + farewell_max);
  server_->Wait();
  server_.reset();
}

}  // namespace tenure::server
