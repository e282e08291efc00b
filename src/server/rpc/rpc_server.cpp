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

/// Time for streams to finish before their connections are closed.
constexpr std::chrono::milliseconds drain_timeout{500};

}  // namespace

RpcServer::RpcServer(Store& store, RpcOptions options)
    : context_{.store = store,
               .limits = options.limits,
               .version = options.version,
               .authorizer = options.authorizer,
               .metrics = options.metrics,
               .reload = options.reload,
               .watches = WatchHub(options.metrics)},
      options_(std::move(options)),
      locks_(context_),
      admin_(context_),
      health_(context_),
      grpc_context_{.loop = store.loop(),
                    .message_bytes_max = options_.message_bytes_max,
                    .calls_per_connection_max = options_.calls_per_connection_max,
                    .connection_bytes_max = options_.connection_bytes_max,
                    .memory_bytes_max = options_.memory_bytes_max,
                    .request_time = options_.request_time,
                    .keep_alive = options_.keep_alive} {
  // Without it clients share the store's queue, and a burst of requests delays the log.
  if (options_.executor) {
    grpc_context_.work = options_.executor;
    context_.client_work = options_.executor;
  }
  if (options_.metrics != nullptr) {
    // One label for all unknown paths: clients choose them, and labels must be bounded.
    grpc_context_.refused = [method = options_.metrics->method("unknown")](grpc::StatusCode code) {
      method.done(static_cast<int>(code));
    };
    grpc_context_.limited = [metrics = options_.metrics](std::string_view limit) {
      metrics->limit_rejected(limit);
    };
  }
  Routes routes(grpc_context_.router, options_.metrics, options_.authorizer);
  locks_.add_to(routes);
  admin_.add_to(routes);
  health_.add_to(routes);
  add_reflection(routes);
  // Order matters: streams end first, so they do not receive the error of their waits as well.
  store.listen(context_.leadership);
  store.listen(context_.waiters);
  store.listen(context_.watches);
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
      grpc_context_, grpc::ServerOptions{.host = address->host,
                                         .port = address->port,
                                         .tls = options_.tls,
                                         .connections_max = options_.connections_max,
                                         .on_connection_rejected = [metrics = options_.metrics] {
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
  context_.is_stopping = true;
  // First is_stopping, then the end of connections: a closed connection must not look like a client
  // that disconnected, because the waits of that client would leave the queue.
  server_->stop_accepting();
  std::promise<void> notified;
  boost::asio::post(context_.store.loop(), [&] {
    // Load balancers and clients learn first that this member stops.
    health_.stop();
    context_.leadership.stop();
    context_.waiters.fail_all({.code = Errc::unavailable,
                               .detail = "the server is stopping; retry with the same request id"});
    notified.set_value();
  });
  // Waits until every waiting call has its error queued, so that the drain below sends it.
  notified.get_future().wait();
  server_->stop(drain_timeout);
  server_.reset();
}

}  // namespace tenure::server
