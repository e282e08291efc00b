#pragma once

#include <memory>
#include <string>
#include <vector>

#include "grpc/health/v1/health.pb.h"
#include "server/rpc/routes.hpp"
#include "server/rpc/unary.hpp"
#include "server/store.hpp"

namespace tenure::server {

/// gRPC's health protocol: serving while this member leads. Of the store's thread.
class HealthService final : public Listener {
 public:
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
  void tell();

  std::vector<std::weak_ptr<Watch>> watches_;
  bool is_leader_ = false;
  bool is_stopped_ = false;
};

}  // namespace tenure::server
