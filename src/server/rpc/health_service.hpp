#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include <absl/container/flat_hash_set.h>
#include <boost/asio/steady_timer.hpp>

#include "grpc/health/v1/health.pb.h"
#include "server/rpc/routes.hpp"
#include "server/rpc/rpc_context.hpp"
#include "server/rpc/unary.hpp"
#include "server/store/store.hpp"

namespace tenure::server {

/// gRPC's health protocol. The server as a whole, and Admin, serve while a leader is known: this
/// member is of use. LockService serves while this very member leads; the answer of another one
/// says in the trailing metadata who does. Watches are few, since they need no authentication, and
/// are notified only when a status has changed. Of the store's thread.
class HealthService final : public Listener {
 public:
  /// Of the whole server, and of one connection.
  static constexpr std::size_t watches_max = 1000;
  static constexpr std::size_t watches_per_connection_max = 16;

  explicit HealthService(RpcContext& context)
      : context_(context), poll_timer_(context.store.loop()) {}

  /// REQUIRES: this outlives the routes.
  void add_to(Routes& routes);

  void role_changed(const LogPosition& log) override;
  /// From now on nothing is served.
  void stop();

 private:
  using Answer = ::grpc::health::v1::HealthCheckResponse;
  class Watch;

  void check(const ::grpc::health::v1::HealthCheckRequest& request, const ReplyPtr<Answer>& reply);
  [[nodiscard]] Answer status_of(const std::string& service) const;
  [[nodiscard]] std::shared_ptr<grpc::Call> open_watch(const grpc::CallInfo& info);
  /// Notifies the watches if that changes anything.
  void update_roles(const LogPosition& log);
  void notify();
  /// Another member may begin and cease to lead without a call of role_changed(): while there are
  /// watches, the position of the log is polled.
  void schedule_poll();

  RpcContext& context_;
  boost::asio::steady_timer poll_timer_;
  absl::flat_hash_set<Watch*> watches_;  ///< All that are open.
  bool is_poll_scheduled_ = false;
  bool is_leader_ = false;
  bool has_leader_ = false;
  bool is_stopped_ = false;
};

}  // namespace tenure::server
