#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "backends/tenured/proto_types.hpp"
#include "backends/tenured/session_client.hpp"
#include "grpc/health/v1/health.pb.h"
#include "grpc/transport_status.hpp"
#include "sys/jitter.hpp"

// Finding the leader and detecting its loss.

namespace tenure::backends::tenured {
namespace {

using std::chrono::milliseconds;

constexpr auto lock_service = "tenure.v1.LockService";
/// Health checks of a server that neither leads nor knows the leader, before another server is
/// tried: it may be partitioned from the others. 25 checks at 25 ms take about one election
/// timeout.
constexpr std::size_t health_checks_max = 25;
constexpr milliseconds health_check_interval{25};
/// A server that accepts connections but does not respond must not block the others.
constexpr milliseconds health_check_timeout_max{1000};

/// Interval of liveness checks: with pending calls, with leases or waits, otherwise.
constexpr milliseconds check_interval_pending{100};
constexpr milliseconds check_interval_leases{500};
constexpr milliseconds check_interval_idle{1000};
/// Silence after which the server is pinged: with pending calls, with queued waits.
constexpr milliseconds ping_after_pending{300};
constexpr milliseconds ping_after_queued{2000};
/// Ping interval and pong timeout are at most TTL/6 for short leases, so that at least two renewals
/// fit into the time until a failure is detected.
constexpr int ttl_fraction = 6;
constexpr milliseconds pong_min{200};
constexpr milliseconds pong_max{500};

Error unavailable(const grpc::Channel& channel, const std::string& why) {
  return error_from({grpc::StatusCode::unavailable, why}, channel.authority());
}

/// Adds a hint to the error of a server that did not respond: it may require TLS.
grpc::Status with_hint(grpc::Status status, const grpc::Channel& channel) {
  if (status.code == grpc::StatusCode::unavailable && !channel.is_tls()) {
    status.message += "; if it requires TLS, set tls_ca to its CA file";
  }
  return status;
}

}  // namespace

void SessionClient::start(milliseconds timeout, std::move_only_function<void(Result<void>)> first) {
  on_first_connection_ = std::move(first);
  connect_timer_.expires_after(timeout);
  connect_timer_.async_wait([weak = weak_from_this()](const boost::system::error_code& error) {
    const auto self = weak.lock();
    if (!error && self && self->on_first_connection_) {
      std::exchange(self->on_first_connection_, nullptr)(std::unexpected(self->last_failure_));
    }
  });
  connector_->connect();
  schedule_liveness_check();
}

/// Checks whether the server of a new channel leads.
void SessionClient::begin_health_check(const std::shared_ptr<grpc::Channel>& channel) {
  channel_ = channel;
  health_checks_ = 0;
  channel->set_on_closed([weak = weak_from_this(), raw = channel.get()] {
    if (const auto self = weak.lock(); self && self->channel_.get() == raw) {
      self->connection_broken(error_from(grpc::status_from(raw->close_error()), raw->authority()));
    }
  });
  request_health(channel);
}

void SessionClient::request_health(const std::shared_ptr<grpc::Channel>& channel) {
  using ::grpc::health::v1::HealthCheckResponse;
  ++health_checks_;
  health_check_timer_.expires_after(server_count_ > 1
                                        ? std::min(health_check_timeout_, health_check_timeout_max)
                                        : health_check_timeout_);
  health_check_timer_.async_wait(
      [weak = weak_from_this(), channel](const boost::system::error_code& error) {
        const auto self = weak.lock();
        if (!error && self && self->channel_ == channel && !self->stream_) {
          self->connection_broken(unavailable(*channel, "it does not respond; is it tenured?"));
        }
      });
  ::grpc::health::v1::HealthCheckRequest request;
  request.set_service(lock_service);
  grpc::UnaryClientCall<HealthCheckResponse>::start(
      *channel, "/grpc.health.v1.Health/Check", request,
      [weak = weak_from_this(), channel](const grpc::Status& status,
                                         const HealthCheckResponse& answer) {
        const auto self = weak.lock();
        if (!self || self->channel_ != channel) {
          return;
        }
        if (!status.ok()) {
          self->disconnected(error_from(with_hint(status, *channel), channel->authority()));
        } else if (answer.status() != HealthCheckResponse::SERVING) {
          self->handle_not_leader(channel, status);
        } else {
          self->begin_session(channel);
        }
      });
}

void SessionClient::handle_not_leader(const std::shared_ptr<grpc::Channel>& channel,
                                      const grpc::Status& status) {
  // A member responds, so waiting for an election is useful: do not give up after one round.
  first_attempts_left_ = server_count_ + 1;
  if (const auto leader = leader_in(status); leader && connector_->redirect_to(*leader)) {
    disconnected(unavailable(*channel, "it does not lead; " + name_of(*leader) + " does"));
    return;
  }
  last_failure_ = unavailable(*channel, "it does not lead and knows no leader");
  if (health_checks_ >= health_checks_max) {
    disconnected(last_failure_);
    return;
  }
  health_check_timer_.expires_after(sys::with_jitter(health_check_interval));
  health_check_timer_.async_wait(
      [weak = weak_from_this(), channel](const boost::system::error_code& error) {
        const auto self = weak.lock();
        if (!error && self && self->channel_ == channel && !self->stream_) {
          // During an election two members may name each other; one of them will be right.
          self->connector_->reset_redirects();
          self->request_health(channel);
        }
      });
}

// The trailers of the ended stream may name the new leader.
void SessionClient::stream_ended(const grpc::Status& status) {
  const auto why = error_from(status, channel_->authority());
  if (channel_->is_closed()) {
    connection_broken(why);
    return;
  }
  if (const auto leader = leader_in(status)) {
    (void)connector_->redirect_to(*leader);
  }
  disconnected(why);
}

void SessionClient::connection_broken(const Error& why) {
  connector_->mark_failed();
  disconnected(why);
}

// Waits whose abandon is pending are completed now: their callers must not wait for the next
// leader.
void SessionClient::disconnected(const Error& why) {
  const auto channel = std::exchange(channel_, nullptr);
  const auto stream = std::exchange(stream_, nullptr);
  health_check_timer_.cancel();
  watches_.disconnected();
  queries_.disconnected();
  if (stream) {
    stream->detach();
  }
  if (channel) {
    channel->close();
  }
  if (stream && listener_ != nullptr) {
    listener_->connection_changed(false, why.detail);
  }
  rejection_.reset();
  if (why != Errc::unavailable) {
    reject_all(why);
  }
  cancel_abandoned_waits();
  connect_failed(why);
  connector_->connect();
}

void SessionClient::reject_all(const Error& why) {
  rejection_ = why;
  waits_.clear();
  queued_count_ = 0;
  for (auto& [id, call] : std::exchange(pending_, {})) {
    fail_with(*call, why);
  }
  queries_.end(why);
  end_if_idle();
}

void SessionClient::connect_failed(const Error& why) {
  last_failure_ = why;
  if (on_first_connection_ && --first_attempts_left_ == 0) {
    connect_timer_.cancel();
    std::exchange(on_first_connection_, nullptr)(std::unexpected(why));
  }
}

// The shortest TTL is tracked as a lower bound and reset only when few leases remain: a ping
// interval that is too short is safe.
void SessionClient::observe_ttl(milliseconds ttl) {
  if (leases_.size() <= 1 || shortest_ttl_ == milliseconds::zero()) {
    shortest_ttl_ = ttl;
  }
  shortest_ttl_ = std::min(shortest_ttl_, ttl);
}

grpc::Http2Connection::KeepAlive SessionClient::keep_alive() const {
  if (connector_->has_single_endpoint() || (pending_.empty() && leases_.empty())) {
    // With one server there is no alternative: no need to detect its failure early.
    return {};
  }
  const auto part = shortest_ttl_ == milliseconds::zero() ? pong_max : shortest_ttl_ / ttl_fraction;
  grpc::Http2Connection::KeepAlive keep_alive{.ping_interval = std::max(part, ping_after_pending),
                                              .ping_timeout = std::clamp(part, pong_min, pong_max)};
  if (pending_.size() > queued_count_) {
    keep_alive.ping_interval = ping_after_pending;
  } else if (queued_count_ > 0) {
    keep_alive.ping_interval = std::min(keep_alive.ping_interval, ping_after_queued);
  }
  return keep_alive;
}

void SessionClient::schedule_liveness_check() {
  const bool is_due = pending_.size() > queued_count_;
  const bool is_kept = !pending_.empty() || !leases_.empty();
  const auto pause = is_due    ? check_interval_pending
                     : is_kept ? check_interval_leases
                               : check_interval_idle;
  liveness_timer_.expires_after(pause);
  liveness_timer_.async_wait(
      [weak = weak_from_this(), pause](const boost::system::error_code& error) {
        const auto self = weak.lock();
        if (error || !self) {
          return;
        }
        const auto now = grpc::Http2Connection::Clock::now();
        // After a suspension of this process, buffered replies are read before the server counts as
        // silent.
        const bool is_late =
            now - std::exchange(self->last_liveness_check_, now) > 3 * pause + check_interval_idle;
        if (self->channel_ && !is_late) {
          self->channel_->check(now, self->keep_alive());
        }
        self->schedule_liveness_check();
      });
}

}  // namespace tenure::backends::tenured
