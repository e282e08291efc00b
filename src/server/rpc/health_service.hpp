#pragma once

#include <memory>
#include <string>
#include <vector>

#include <boost/asio/steady_timer.hpp>

#include "grpc/health/v1/health.pb.h"
#include "server/rpc/desk.hpp"
#include "server/rpc/routes.hpp"
#include "server/rpc/unary.hpp"
#include "server/store.hpp"

namespace tenure::server {

/// gRPC's health protocol. The server as a whole, and Admin, serve while a leader is known: this
/// member is of use. LockService serves while this very member leads; the answer of another one
/// says in the trailing metadata who does. Of the store's thread.
class HealthService final : public Listener {
 public:
  explicit HealthService(Desk& desk) : desk_(desk), look_(desk.store.loop()) {}

  /// REQUIRES: this outlives the routes.
  void add_to(Routes& routes);

  void role_changed(const LogPosition& log) override;
  /// From now on nothing is served.
  void stop();

 private:
  using Answer = ::grpc::health::v1::HealthCheckResponse;
  class Watch;

  void check(const ::grpc::health::v1::HealthCheckRequest& request, const ReplyTo<Answer>& reply);
  [[nodiscard]] Answer status_of(const std::string& service) const;
  void see(const LogPosition& log);
  void tell();
  /// Another leader than us may come and go unheard: those who watch look now and then.
  void look_soon();

  Desk& desk_;
  boost::asio::steady_timer look_;
  std::vector<std::weak_ptr<Watch>> watches_;
  bool is_leader_ = false;
  bool has_leader_ = false;
  bool is_stopped_ = false;
};

}  // namespace tenure::server
