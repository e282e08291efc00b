#include "server/rpc/health_service.hpp"

#include <algorithm>
#include <chrono>
#include <string_view>
#include <utility>

#include "grpc/connection.hpp"

namespace tenure::server {
namespace {

/// Upper bound for the delay of a notification. One peek per interval, whatever the number of
/// watches.
constexpr std::chrono::milliseconds poll_interval{500};

}  // namespace

using ::grpc::health::v1::HealthCheckRequest;
using ::grpc::health::v1::HealthCheckResponse;

/// Watch call of one client.
class HealthService::Watch final : public grpc::Call {
 public:
  Watch(const grpc::CallInfo& info, HealthService& service)
      : Call(info), connection_(&info.connection), service_(service) {}

  [[nodiscard]] const grpc::Connection* connection() const noexcept { return connection_; }

  void notify() {
    const auto now = service_.status_of(wanted_.service());
    // Only changes are sent, as the gRPC health checking protocol requires.
    if (has_request_ && std::exchange(last_, now.status()) != now.status()) {
      send(now);
    }
  }

 private:
  void received(std::string_view message) override {
    if (!wanted_.ParseFromArray(message.data(), static_cast<int>(message.size()))) {
      finish({grpc::StatusCode::invalid_argument, "invalid HealthCheckRequest"});
    }
  }
  void half_closed() override {
    has_request_ = true;
    notify();
  }
  void closed() override { service_.watches_.erase(this); }

  const grpc::Connection* connection_;  ///< Only compared, never dereferenced.
  HealthService& service_;
  HealthCheckRequest wanted_;
  /// Last status sent; -1: none, so the first status is always sent.
  int last_ = -1;
  bool has_request_ = false;
};

void HealthService::add_to(Routes& routes) {
  routes.add("/grpc.health.v1.Health/Check", auth::Permission::none, *this, &HealthService::check);
  routes.add("/grpc.health.v1.Health/Watch", auth::Permission::none,
             [this](const grpc::CallInfo& info, const std::unique_ptr<auth::Principal>&) {
               return open_watch(info);
             });
}

std::shared_ptr<grpc::Call> HealthService::open_watch(const grpc::CallInfo& info) {
  auto watch = std::make_shared<Watch>(info, *this);
  const auto of_connection = std::ranges::count_if(
      watches_, [&](const Watch* other) { return other->connection() == watch->connection(); });
  if (watches_.size() >= watches_max ||
      static_cast<std::size_t>(of_connection) >= watches_per_connection_max) {
    watch->finish({grpc::StatusCode::resource_exhausted, "too many open health watches"});
    return watch;
  }
  watches_.insert(watch.get());
  schedule_poll();
  return watch;
}

void HealthService::role_changed(const LogPosition& log) {
  update_roles(log);
}

void HealthService::update_roles(const LogPosition& log) {
  const bool has_leader = log.is_leader || log.leader != 0;
  // Called with every poll, so it acts on changes only.
  if (is_leader_ == log.is_leader && has_leader_ == has_leader) {
    return;
  }
  is_leader_ = log.is_leader;
  has_leader_ = has_leader;
  notify();
}

void HealthService::stop() {
  is_stopped_ = true;
  poll_timer_.cancel();
  notify();
}

void HealthService::check(const HealthCheckRequest& request, const ReplyPtr<Answer>& reply) {
  // Updates the roles first, so that a check is never older than the local state.
  context_.store.peek([this, service = request.service(), reply](const Result<View>& view) {
    if (view) {
      update_roles(view->log);
    }
    reply->response = status_of(service);
    if (reply->response.status() == HealthCheckResponse::SERVICE_UNKNOWN) {
      reply->complete({grpc::StatusCode::not_found, "unknown service"});
      return;
    }
    const bool serves = reply->response.status() == HealthCheckResponse::SERVING;
    // Load balancers read the status; clients that read the trailers find the leader directly.
    reply->complete(serves || !view ? grpc::Status{}
                                    : context_.leadership.with_leader({}, view->log));
  });
}

void HealthService::schedule_poll() {
  if (std::exchange(is_poll_scheduled_, true)) {
    return;
  }
  poll_timer_.expires_after(poll_interval);
  poll_timer_.async_wait([this](const boost::system::error_code& error) {
    is_poll_scheduled_ = false;
    // Without watches the polling stops; the next watch starts it again.
    if (error || is_stopped_ || watches_.empty()) {
      return;
    }
    context_.store.peek([this](const Result<View>& view) {
      if (view) {
        update_roles(view->log);
      }
    });
    schedule_poll();
  });
}

HealthCheckResponse HealthService::status_of(const std::string& service) const {
  HealthCheckResponse answer;
  const bool is_locks = service == "tenure.v1.LockService";
  if (!is_locks && !service.empty() && service != "tenure.v1.Admin") {
    answer.set_status(HealthCheckResponse::SERVICE_UNKNOWN);
    return answer;
  }
  const bool serves = !is_stopped_ && (is_locks ? is_leader_ : has_leader_);
  answer.set_status(serves ? HealthCheckResponse::SERVING : HealthCheckResponse::NOT_SERVING);
  return answer;
}

void HealthService::notify() {
  // send() closes no call synchronously, so the set does not change.
  for (auto* watch : watches_) {
    watch->notify();
  }
}

}  // namespace tenure::server
