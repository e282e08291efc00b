#include "backends/etcd/connection.hpp"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <tuple>
#include <vector>

#include "grpc/transport_status.hpp"

namespace tenure::backends::etcd {
namespace {

using std::chrono::milliseconds;

/// A member that accepts connections but does not respond must not block the others.
constexpr milliseconds handshake_timeout_max{1000};
/// Interval of liveness checks: with pending calls, otherwise.
constexpr milliseconds check_interval_pending{100};
constexpr milliseconds check_interval_idle{500};
/// Silence after which the member is pinged while a call is pending.
constexpr milliseconds ping_after_pending{300};
/// Ping interval and pong timeout are at most TTL/6 for short leases, so that two renewals fit into
/// the time until a failure is detected.
constexpr int ttl_fraction = 6;
constexpr milliseconds pong_min{200};
constexpr milliseconds pong_max{500};

/// A member that invalidates a token sooner than this would invalidate the next one, too: use
/// another member.
constexpr milliseconds reauthenticate_after{1000};

/// First version with range comparisons and nested transactions.
constexpr std::pair version_min{3, 4};

/// Major and minor of a version such as "3.4.23"; zeros if the text is not a version.
std::pair<int, int> version_from(std::string_view text) {
  std::pair<int, int> version{0, 0};
  const auto* const end = text.data() + text.size();
  const auto [dot, error] = std::from_chars(
      text.data(), end, version.first);  // NOLINT(*-stringview-data-usage): has an end
  if (error == std::errc{} && dot != end) {
    std::from_chars(dot + 1, end, version.second);
  }
  return version;
}

}  // namespace

Connection::Connection(boost::asio::io_context& loop, Address address, Callbacks calls)
    : address_(std::move(address)),
      callbacks_(std::move(calls)),
      handshake_timer_(loop),
      liveness_timer_(loop),
      first_attempts_left_(address_.servers.endpoints.size()),
      connect_timer_(loop) {
  connector_ = std::make_shared<ChannelConnector>(
      loop, address_.servers,
      ChannelConnector::Callbacks{
          .connected = [this](const auto& channel) { begin_handshake(channel); },
          .failed = [this](const Error& why) { connect_failed(why); }});
}

void Connection::start(milliseconds timeout, FirstConnection first) {
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

void Connection::stop() {
  is_stopped_ = true;
  is_up_ = false;
  connector_->stop();
  handshake_timer_.cancel();
  liveness_timer_.cancel();
  connect_timer_.cancel();
  if (const auto channel = std::exchange(channel_, nullptr)) {
    channel->close();
  }
}

// Handshake.

void Connection::begin_handshake(const std::shared_ptr<grpc::Channel>& channel) {
  channel_ = channel;
  server_ = channel->authority();
  channel->set_on_closed([weak = weak_from_this(), raw = channel.get()] {
    if (const auto self = weak.lock(); self && self->channel_.get() == raw) {
      self->connector_->mark_failed();
      self->disconnect(error_from(grpc::status_from(raw->close_error()), raw->authority()));
    }
  });
  const auto most = address_.servers.connect_timeout;
  handshake_timer_.expires_after(
      address_.servers.endpoints.size() > 1 ? std::min(most, handshake_timeout_max) : most);
  handshake_timer_.async_wait(
      [weak = weak_from_this(), channel](const boost::system::error_code& error) {
        const auto self = weak.lock();
        if (!error && self && self->channel_ == channel && !self->is_up_) {
          self->connector_->mark_failed();
          self->disconnect({.code = Errc::unavailable,
                            .detail = self->server_ + ": it does not respond; is it etcd?"});
        }
      });
  address_.user.empty() ? check_status() : authenticate();
}

bool Connection::is_current_success(const std::shared_ptr<grpc::Channel>& channel,
                                    const grpc::Status& status) {
  if (channel_ != channel || is_stopped_) {
    return false;
  }
  if (status.ok()) {
    return true;
  }
  auto failure = classify(status, server_);
  if (failure.error == Errc::unavailable && !channel->is_tls()) {
    failure.error.detail += "; if it requires TLS, use etcds://";
  }
  disconnect(failure.error);
  return false;
}

void Connection::authenticate() {
  pb::AuthenticateRequest request;
  request.set_name(address_.user);
  request.set_password(address_.password);
  channel_->set_metadata({});
  grpc::UnaryClientCall<pb::AuthenticateResponse>::start(
      *channel_, "/etcdserverpb.Auth/Authenticate", request,
      [self = shared_from_this(), channel = channel_](const grpc::Status& status,
                                                      const pb::AuthenticateResponse& answer) {
        if (self->is_current_success(channel, status)) {
          self->token_ = answer.token();
          self->authenticated_at_ = grpc::Http2Connection::Clock::now();
          self->check_status();
        }
      });
}

void Connection::check_status() {
  // With `hasleader`, a member without a leader fails calls at once instead of delaying them.
  std::vector<grpc::MetadataField> lines{{.name = "hasleader", .value = "true"}};
  if (!address_.user.empty()) {
    lines.push_back({.name = "token", .value = token_});
  }
  channel_->set_metadata(std::move(lines));
  grpc::UnaryClientCall<pb::StatusResponse>::start(
      *channel_, "/etcdserverpb.Maintenance/Status", pb::StatusRequest{},
      [self = shared_from_this(), channel = channel_](const grpc::Status& status,
                                                      const pb::StatusResponse& answer) {
        if (!self->is_current_success(channel, status)) {
          return;
        }
        const auto cluster = answer.header().cluster_id();
        std::string why;
        auto code = Errc::unavailable;
        if (version_from(answer.version()) < version_min) {
          code = Errc::unsupported;
          why = "it reports version \"" + answer.version() + "\"; etcd 3.4 or later is needed";
        } else if (self->cluster_ && *self->cluster_ != cluster) {
          // Two clusters would both grant the same lock.
          code = Errc::invalid_argument;
          why = "it belongs to a different cluster than the previous member";
        } else if (answer.is_learner()) {
          why = "it is a learner, which serves no requests";
        } else if (answer.leader() == 0) {
          why = "it has no leader";
        }
        if (!why.empty()) {
          self->disconnect({.code = code, .detail = self->server_ + ": " + why});
          return;
        }
        self->cluster_ = cluster;
        self->check_store();
      });
}

/// Reads a key: verifies the authentication and that a majority responds.
void Connection::check_store() {
  pb::RangeRequest request;
  request.set_key(address_.root.empty() ? "tenure" : address_.root);
  request.set_keys_only(true);
  grpc::UnaryClientCall<pb::RangeResponse>::start(
      *channel_, "/etcdserverpb.KV/Range", request,
      [self = shared_from_this(), channel = channel_](const grpc::Status& status,
                                                      const pb::RangeResponse&) {
        // Permissions may cover only some names; a missing one is reported when a lock needs it.
        const bool is_forbidden = status.code == grpc::StatusCode::permission_denied;
        if (self->is_current_success(channel, is_forbidden ? grpc::Status{} : status)) {
          self->complete_handshake();
        }
      });
}

void Connection::complete_handshake() {
  handshake_timer_.cancel();
  is_up_ = true;
  if (on_first_connection_) {
    connect_timer_.cancel();
    std::exchange(on_first_connection_, nullptr)({});
  }
  callbacks_.connected();
}

// Failure detection.

void Connection::recover(const Failure& failure) {
  if (!is_up_ || failure.recovery == Recovery::none) {
    return;
  }
  const auto now = grpc::Http2Connection::Clock::now();
  const bool should_reauthenticate = failure.recovery == Recovery::reauthenticate &&
                                     now - authenticated_at_ > reauthenticate_after;
  if (!should_reauthenticate) {
    disconnect(failure.error);
    return;
  }
  // Streams keep the token of their start, so all of them must be opened again.
  is_up_ = false;
  callbacks_.disconnected(failure.error);
  if (channel_ && !is_stopped_) {
    begin_handshake(channel_);
  }
}

void Connection::disconnect(const Error& why) {
  const auto channel = std::exchange(channel_, nullptr);
  const bool was_up = std::exchange(is_up_, false);
  handshake_timer_.cancel();
  if (channel) {
    channel->close();
  }
  if (is_stopped_) {
    return;
  }
  if (was_up) {
    callbacks_.disconnected(why);
  }
  if (why != Errc::unavailable) {
    callbacks_.rejected(why);
  }
  connect_failed(why);
  connector_->connect();
}

void Connection::connect_failed(const Error& why) {
  last_failure_ = why;
  if (on_first_connection_ && --first_attempts_left_ == 0) {
    connect_timer_.cancel();
    std::exchange(on_first_connection_, nullptr)(std::unexpected(why));
  }
}

grpc::Http2Connection::KeepAlive Connection::keep_alive() const {
  const auto ttl = callbacks_.shortest_ttl();
  if (connector_->has_single_endpoint() || (pending_calls_ == 0 && ttl == milliseconds::zero())) {
    // With one member there is no alternative: no need to detect its failure early.
    return {};
  }
  const auto part = ttl == milliseconds::zero() ? pong_max : ttl / ttl_fraction;
  return {
      .ping_interval = pending_calls_ > 0 ? ping_after_pending : std::max(part, ping_after_pending),
      .ping_timeout = std::clamp(part, pong_min, pong_max)};
}

void Connection::schedule_liveness_check() {
  const auto pause = pending_calls_ > 0 ? check_interval_pending : check_interval_idle;
  liveness_timer_.expires_after(pause);
  liveness_timer_.async_wait(
      [weak = weak_from_this(), pause](const boost::system::error_code& error) {
        const auto self = weak.lock();
        if (error || !self || self->is_stopped_) {
          return;
        }
        const auto now = grpc::Http2Connection::Clock::now();
        // After a suspension of this process, buffered replies are read before the member counts as
        // silent.
        const bool is_late =
            now - std::exchange(self->last_liveness_check_, now) > 3 * pause + check_interval_idle;
        if (self->channel_ && !is_late) {
          self->channel_->check(now, self->keep_alive());
        }
        self->schedule_liveness_check();
      });
}

}  // namespace tenure::backends::etcd
