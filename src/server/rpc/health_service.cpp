#include "server/rpc/health_service.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

namespace tenure::server {

using ::grpc::health::v1::HealthCheckRequest;
using ::grpc::health::v1::HealthCheckResponse;

/// One who wants to hear of changes.
class HealthService::Watch final : public h2::Call {
 public:
  Watch(const h2::Opening& opening, HealthService& service) : Call(opening), service_(service) {}

  void tell() {
    const auto now = service_.status_of(wanted_.service());
    if (is_asked_ && std::exchange(last_, now.status()) != now.status()) {
      send(now);
    }
  }

 private:
  void received(std::string_view message) override {
    if (!wanted_.ParseFromArray(message.data(), static_cast<int>(message.size()))) {
      finish({h2::StatusCode::invalid_argument, "this is no HealthCheckRequest"});
    }
  }
  void half_closed() override {
    is_asked_ = true;
    tell();
  }
  void closed() override {}

  HealthService& service_;
  HealthCheckRequest wanted_;
  int last_ = -1;
  bool is_asked_ = false;
};

void HealthService::add_to(Routes& routes) {
  routes.add("/grpc.health.v1.Health/Check", *this, &HealthService::check);
  routes.add("/grpc.health.v1.Health/Watch", [this](const h2::Opening& opening) {
    auto watch = std::make_shared<Watch>(opening, *this);
    std::erase_if(watches_, [](const auto& weak) { return weak.expired(); });
    watches_.push_back(watch);
    return watch;
  });
}

void HealthService::role_changed(const LogPosition& log) {
  is_leader_ = log.is_leader;
  tell();
}

void HealthService::stop() {
  is_stopped_ = true;
  tell();
}

void HealthService::check(const HealthCheckRequest& request, const ReplyTo<Answer>& reply) {
  reply->response = status_of(request.service());
  if (reply->response.status() == HealthCheckResponse::SERVICE_UNKNOWN) {
    reply->answer({h2::StatusCode::not_found, "no service has this name"});
    return;
  }
  reply->answer();
}

HealthCheckResponse HealthService::status_of(const std::string& service) const {
  static constexpr std::string_view known[] = {"", "tenure.v1.LockService", "tenure.v1.Admin"};
  HealthCheckResponse answer;
  if (std::ranges::find(known, service) == std::end(known)) {
    answer.set_status(HealthCheckResponse::SERVICE_UNKNOWN);
  } else {
    answer.set_status(is_leader_ && !is_stopped_ ? HealthCheckResponse::SERVING
                                                 : HealthCheckResponse::NOT_SERVING);
  }
  return answer;
}

void HealthService::tell() {
  for (const auto& weak : watches_) {
    if (const auto watch = weak.lock()) {
      watch->tell();
    }
  }
}

}  // namespace tenure::server
