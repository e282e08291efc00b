#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "backends/tenured/courier.hpp"
#include "backends/tenured/proto_types.hpp"
#include "grpc/fault.hpp"
#include "grpc/health/v1/health.pb.h"
#include "sys/jitter.hpp"

// How a courier finds the leader, and notices that it is gone.

namespace tenure::backends::tenured {
namespace {

using std::chrono::milliseconds;

constexpr auto lock_service = "tenure.v1.LockService";
/// A server that does not lead, and cannot say who does, is asked again so often before another one
/// is tried: it may be cut off from the others.
constexpr std::size_t inspections_max = 25;
constexpr milliseconds inspect_again_after{25};
/// One that accepts and says nothing must not keep us from the others.
constexpr milliseconds inspection_max{1000};

/// How often we look whether the server is still there: while an answer is due, while something
/// else depends on it, and else.
constexpr milliseconds check_often{100};
constexpr milliseconds check_now_and_then{500};
constexpr milliseconds check_seldom{1000};
/// The silence after which we ask whether anybody is there: while an answer is due, while somebody
/// waits in a queue.
constexpr milliseconds silence_due{300};
constexpr milliseconds silence_queued{2000};
/// With a lease that is short, both that and the wait for the pong are this part of it: two
/// renewals are due in that time at the earliest.
constexpr int parts_of_ttl = 6;
constexpr milliseconds pong_min{200};
constexpr milliseconds pong_max{500};

Error unavailable(const grpc::Channel& channel, const std::string& why) {
  return error_from({grpc::StatusCode::unavailable, why}, channel.authority());
}

/// Of a server that did not even say how it is: it may want something else.
grpc::Status with_hint(grpc::Status status, const grpc::Channel& channel) {
  if (status.code == grpc::StatusCode::unavailable && !channel.is_tls()) {
    status.message += "; if it wants TLS, tls_ca names its authority";
  }
  return status;
}

}  // namespace

void Courier::start(milliseconds timeout, std::move_only_function<void(Result<void>)> first) {
  first_ = std::move(first);
  connect_timer_.expires_after(timeout);
  connect_timer_.async_wait([weak = weak_from_this()](const boost::system::error_code& error) {
    const auto self = weak.lock();
    if (!error && self && self->first_) {
      std::exchange(self->first_, nullptr)(std::unexpected(self->last_failure_));
    }
  });
  dialer_->dial();
  check_soon();
}

/// Is it one that leads?
void Courier::inspect(const std::shared_ptr<grpc::Channel>& channel) {
  channel_ = channel;
  inspections_ = 0;
  channel->when_gone([weak = weak_from_this(), raw = channel.get()] {
    if (const auto self = weak.lock(); self && self->channel_.get() == raw) {
      self->broken(error_from(grpc::explain(raw->fault()), raw->authority()));
    }
  });
  ask_health(channel);
}

void Courier::ask_health(const std::shared_ptr<grpc::Channel>& channel) {
  using ::grpc::health::v1::HealthCheckResponse;
  ++inspections_;
  inspection_.expires_after(servers_ > 1 ? std::min(inspection_max_, inspection_max)
                                         : inspection_max_);
  inspection_.async_wait(
      [weak = weak_from_this(), channel](const boost::system::error_code& error) {
        const auto self = weak.lock();
        if (!error && self && self->channel_ == channel && !self->stream_) {
          self->broken(unavailable(*channel, "it does not answer; is it tenured?"));
        }
      });
  ::grpc::health::v1::HealthCheckRequest request;
  request.set_service(lock_service);
  grpc::Question<HealthCheckResponse>::ask(
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
          self->led_away(channel, status);
        } else {
          self->begin_session(channel);
        }
      });
}

void Courier::led_away(const std::shared_ptr<grpc::Channel>& channel, const grpc::Status& status) {
  // Somebody lives, so it is worth while to wait for a leader.
  first_tries_left_ = servers_ + 1;
  if (const auto leader = leader_in(status); leader && dialer_->follow(*leader)) {
    disconnected(unavailable(*channel, "it does not lead; " + name_of(*leader) + " does"));
    return;
  }
  last_failure_ = unavailable(*channel, "it does not lead, and knows nobody who does");
  if (inspections_ >= inspections_max) {
    disconnected(last_failure_);
    return;
  }
  inspection_.expires_after(sys::with_jitter(inspect_again_after));
  inspection_.async_wait(
      [weak = weak_from_this(), channel](const boost::system::error_code& error) {
        const auto self = weak.lock();
        if (!error && self && self->channel_ == channel && !self->stream_) {
          // Two that name each other while the leadership moves: one of them will be right.
          self->dialer_->rested();
          self->ask_health(channel);
        }
      });
}

void Courier::stream_ended(const grpc::Status& status) {
  const auto why = error_from(status, channel_->authority());
  if (channel_->is_gone()) {
    broken(why);
    return;
  }
  if (const auto leader = leader_in(status)) {
    (void)dialer_->follow(*leader);
  }
  disconnected(why);
}

void Courier::broken(const Error& why) {
  dialer_->blame();
  disconnected(why);
}

void Courier::disconnected(const Error& why) {
  const auto channel = std::exchange(channel_, nullptr);
  const auto stream = std::exchange(stream_, nullptr);
  inspection_.cancel();
  watches_.disconnected();
  looks_.disconnected();
  if (channel) {
    channel->close();
  }
  if (stream && listener_ != nullptr) {
    listener_->connection_changed(false, why.detail);
  }
  refusal_.reset();
  if (why != Errc::unavailable) {
    refused(why);
  }
  call_off_all();
  first_failed(why);
  dialer_->dial();
}

void Courier::refused(const Error& why) {
  refusal_ = why;
  waits_.clear();
  queued_ = 0;
  for (auto& [id, errand] : std::exchange(open_, {})) {
    fail_with(*errand, why);
  }
  looks_.end(why);
  done_if_idle();
}

void Courier::first_failed(const Error& why) {
  last_failure_ = why;
  if (first_ && --first_tries_left_ == 0) {
    connect_timer_.cancel();
    std::exchange(first_, nullptr)(std::unexpected(why));
  }
}

void Courier::heed_ttl(milliseconds ttl) {
  if (leases_.size() <= 1 || shortest_ttl_ == milliseconds::zero()) {
    shortest_ttl_ = ttl;
  }
  shortest_ttl_ = std::min(shortest_ttl_, ttl);
}

grpc::Link::KeepAlive Courier::keep_alive() const {
  if (dialer_->knows_one_only() || (open_.empty() && leases_.empty())) {
    // Without another one to go to there is no hurry.
    return {};
  }
  const auto part = shortest_ttl_ == milliseconds::zero() ? pong_max : shortest_ttl_ / parts_of_ttl;
  grpc::Link::KeepAlive keep_alive{.ping_every = std::max(part, silence_due),
                                .ping_wait = std::clamp(part, pong_min, pong_max)};
  if (open_.size() > queued_) {
    keep_alive.ping_every = silence_due;
  } else if (queued_ > 0) {
    keep_alive.ping_every = std::min(keep_alive.ping_every, silence_queued);
  }
  return keep_alive;
}

void Courier::check_soon() {
  const bool is_due = open_.size() > queued_;
  const bool is_kept = !open_.empty() || !leases_.empty();
  const auto pause = is_due ? check_often : is_kept ? check_now_and_then : check_seldom;
  check_.expires_after(pause);
  check_.async_wait([weak = weak_from_this(), pause](const boost::system::error_code& error) {
    const auto self = weak.lock();
    if (error || !self) {
      return;
    }
    const auto now = grpc::Link::Clock::now();
    // If it was us who slept, what the server said meanwhile is to be read first.
    const bool is_late = now - std::exchange(self->checked_, now) > 3 * pause + check_seldom;
    if (self->channel_ && !is_late) {
      self->channel_->check(now, self->keep_alive());
    }
    self->check_soon();
  });
}

}  // namespace tenure::backends::tenured
