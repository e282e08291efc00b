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

/// Implements gRPC health checking. The server and Admin are SERVING while a leader is known;
/// LockService while this member leads. Other members name the leader in the trailing metadata.
/// Watches are limited, because they need no authentication, and receive only changes. Store thread
/// only.
class HealthService final : public Listener {
 public:
  /// Limits for the whole server and for one connection.
  static constexpr std::size_t watches_max = 1000;
  static constexpr std::size_t watches_per_connection_max = 16;

  explicit HealthService(RpcContext& context)
      : context_(context), poll_timer_(context.store.loop()) {}

  /// REQUIRES: this outlives the routes.
  void add_to(Routes& routes);

  // Listener
  void role_changed(const LogPosition& log) override;
  /// Reports NOT_SERVING from now on.
  void stop();

 private:
  using Answer = ::grpc::health::v1::HealthCheckResponse;
  /// Open Health.Watch call.
  class Watch;

  void check(const ::grpc::health::v1::HealthCheckRequest& request, const ReplyPtr<Answer>& reply);
  /// Status of a service: empty for the whole server, or a full service name.
  [[nodiscard]] Answer status_of(const std::string& service) const;
  /// Opens a watch, or returns a call that has failed because a limit is reached.
  [[nodiscard]] std::shared_ptr<grpc::Call> open_watch(const grpc::CallInfo& info);
  /// Updates the roles and notifies the watches on a change.
  void update_roles(const LogPosition& log);
  void notify();
  /// Polls the log position while watches are open: leadership of another member can change without
  /// a call of role_changed().
  void schedule_poll();

  RpcContext& context_;
  boost::asio::steady_timer poll_timer_;
  absl::flat_hash_set<Watch*> watches_;  ///< Open watches.
  bool is_poll_scheduled_ = false;
  bool is_leader_ = false;
  bool has_leader_ = false;
  bool is_stopped_ = false;
};

}  // namespace tenure::server
