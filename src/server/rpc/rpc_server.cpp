#include "server/rpc/rpc_server.hpp"

#include <chrono>
#include <future>
#include <string_view>
#include <utility>

#include <boost/asio/post.hpp>

#include "server/config/units.hpp"
#include "server/rpc/reflection_service.hpp"
#include "server/rpc/routes.hpp"
#include "sys/log.hpp"

namespace tenure::server {
namespace {

/// How long streams may go on after the server was told to stop.
constexpr std::chrono::milliseconds farewell_max{500};

}  // namespace

RpcServer::RpcServer(Store& store, RpcOptions options)
    : desk_{.store = store,
            .limits = options.limits,
            .version = options.version,
            .gate = options.gate,
            .metrics = options.metrics,
            .reload = options.reload,
            .watches = WatchHub(options.metrics)},
      options_(std::move(options)),
      locks_(desk_),
      admin_(desk_),
      health_(desk_),
      house_{.loop = store.loop(),
             .message_bytes_max = options_.message_bytes_max,
             .calls_per_connection_max = options_.calls_per_connection_max,
             .connection_bytes_max = options_.connection_bytes_max,
             .memory_bytes_max = options_.memory_bytes_max,
             .request_time = options_.request_time,
             .patience = options_.patience} {
  if (options_.executor) {
    house_.work = options_.executor;
  }
  if (options_.metrics != nullptr) {
    // One name for all of them: clients choose the paths.
    house_.refused = [method = options_.metrics->method("unknown")](grpc::StatusCode code) {
      method.done(static_cast<int>(code));
    };
    house_.limited = [metrics = options_.metrics](std::string_view limit) {
      metrics->limit_rejected(limit);
    };
  }
  Routes routes(house_.router, options_.metrics, options_.gate);
  locks_.add_to(routes);
  admin_.add_to(routes);
  health_.add_to(routes);
  add_reflection(routes);
  // Streams first: what they wait for is then not told to them once more.
  store.listen(desk_.leadership);
  store.listen(desk_.callers);
  store.listen(desk_.watches);
  store.listen(health_);
}

RpcServer::~RpcServer() {
  stop();
}

Result<int> RpcServer::start() {
  const auto address = parse_address(options_.address);
  if (!address) {
    return std::unexpected(address.error());
  }
  auto server = std::make_shared<grpc::Server>(
      house_, grpc::ServerOptions{.host = address->host,
                                  .port = address->port,
                                  .tls = options_.tls,
                                  .connections_max = options_.connections_max,
                                  .turned_away = [metrics = options_.metrics] {
                                    log::warning("connection_refused",
                                                 {{"limit", "service.connections_max"}});
                                    if (metrics != nullptr) {
                                      metrics->limit_rejected("connections_max");
                                    }
                                  }});
  const auto port = server->listen();
  if (!port) {
    return std::unexpected(port.error());
  }
  server_ = std::move(server);
  server_->open();
  return *port;
}

void RpcServer::stop() {
  if (!server_) {
    return;
  }
  desk_.is_stopping = true;
  server_->shut();
  std::promise<void> dismissed;
  boost::asio::post(desk_.store.loop(), [&] {
    health_.stop();
    desk_.leadership.stop();
    desk_.callers.dismiss({.code = Errc::unavailable,
                           .detail = "the server stops; ask again with the same request id"});
    dismissed.set_value();
  });
  dismissed.get_future().wait();
  server_->stop(farewell_max);
  server_.reset();
}

}  // namespace tenure::server
