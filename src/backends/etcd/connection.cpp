#include "backends/etcd/connection.hpp"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <tuple>
#include <vector>

#include "grpc/fault.hpp"

namespace tenure::backends::etcd {
namespace {

using std::chrono::milliseconds;

/// One that accepts and says nothing must not keep us from the others.
constexpr milliseconds inspection_max{1000};
/// How often we look whether the member is still there: while an answer is due, and else.
constexpr milliseconds check_often{100};
constexpr milliseconds check_seldom{500};
/// The silence after which we ask whether anybody is there, while an answer is due.
constexpr milliseconds silence_due{300};
/// With a lease that is short, both that and the wait for the pong are this part of it.
constexpr int parts_of_ttl = 6;
constexpr milliseconds pong_min{200};
constexpr milliseconds pong_max{500};

/// A member that has forgotten us sooner will not remember us now.
constexpr milliseconds login_again_after{1000};

/// What it can do: comparisons of ranges, transactions inside transactions.
constexpr std::pair oldest{3, 4};

/// 3 and 4 of "3.4.23"; zeros if it is none.
std::pair<int, int> version_from(std::string_view text) {
  std::pair<int, int> version{0, 0};
  const auto* const end = text.data() + text.size();
  const auto [dot, error] = std::from_chars(text.data(), end, version.first);
  if (error == std::errc{} && dot != end) {
    std::from_chars(dot + 1, end, version.second);
  }
  return version;
}

}  // namespace

Connection::Connection(boost::asio::io_context& loop, Address address, Calls calls)
    : address_(std::move(address)),
      calls_(std::move(calls)),
      inspection_(loop),
      check_(loop),
      first_tries_left_(address_.servers.endpoints.size()),
      connect_timer_(loop) {
  dialer_ = std::make_shared<Dialer>(
      loop, address_.servers,
      Dialer::Calls{.connected = [this](const auto& channel) { inspect(channel); },
                    .failed = [this](const Error& why) { first_failed(why); }});
}

void Connection::start(milliseconds timeout, First first) {
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

void Connection::stop() {
  is_stopped_ = true;
  is_up_ = false;
  dialer_->stop();
  inspection_.cancel();
  check_.cancel();
  connect_timer_.cancel();
  if (const auto channel = std::exchange(channel_, nullptr)) {
    channel->close();
  }
}

// Who is there?

void Connection::inspect(const std::shared_ptr<grpc::Channel>& channel) {
  channel_ = channel;
  server_ = channel->authority();
  channel->when_gone([weak = weak_from_this(), raw = channel.get()] {
    if (const auto self = weak.lock(); self && self->channel_.get() == raw) {
      self->dialer_->blame();
      self->leave(error_from(grpc::explain(raw->fault()), raw->authority()));
    }
  });
  const auto most = address_.servers.connect_timeout;
  inspection_.expires_after(address_.servers.endpoints.size() > 1 ? std::min(most, inspection_max)
                                                                  : most);
  inspection_.async_wait(
      [weak = weak_from_this(), channel](const boost::system::error_code& error) {
        const auto self = weak.lock();
        if (!error && self && self->channel_ == channel && !self->is_up_) {
          self->dialer_->blame();
          self->leave({.code = Errc::unavailable,
                       .detail = self->server_ + ": it does not answer; is it etcd?"});
        }
      });
  address_.user.empty() ? look_at_status() : log_in();
}

bool Connection::is_good(const std::shared_ptr<grpc::Channel>& channel,
                         const grpc::Status& status) {
  if (channel_ != channel || is_stopped_) {
    return false;
  }
  if (status.ok()) {
    return true;
  }
  auto verdict = judge(status, server_);
  if (verdict.error == Errc::unavailable && !channel->is_tls()) {
    verdict.error.detail += "; if it wants TLS, it is etcds://";
  }
  leave(verdict.error);
  return false;
}

void Connection::log_in() {
  pb::AuthenticateRequest request;
  request.set_name(address_.user);
  request.set_password(address_.password);
  channel_->set_lines({});
  grpc::Question<pb::AuthenticateResponse>::ask(
      *channel_, "/etcdserverpb.Auth/Authenticate", request,
      [self = shared_from_this(), channel = channel_](const grpc::Status& status,
                                                      const pb::AuthenticateResponse& answer) {
        if (self->is_good(channel, status)) {
          self->token_ = answer.token();
          self->logged_in_ = grpc::Link::Clock::now();
          self->look_at_status();
        }
      });
}

void Connection::look_at_status() {
  // A member that has lost its leader says so at once, instead of letting us wait.
  std::vector<grpc::Trailer> lines{{.name = "hasleader", .value = "true"}};
  if (!address_.user.empty()) {
    lines.push_back({.name = "token", .value = token_});
  }
  channel_->set_lines(std::move(lines));
  grpc::Question<pb::StatusResponse>::ask(
      *channel_, "/etcdserverpb.Maintenance/Status", pb::StatusRequest{},
      [self = shared_from_this(), channel = channel_](const grpc::Status& status,
                                                      const pb::StatusResponse& answer) {
        if (!self->is_good(channel, status)) {
          return;
        }
        const auto cluster = answer.header().cluster_id();
        std::string why;
        auto code = Errc::unavailable;
        if (version_from(answer.version()) < oldest) {
          code = Errc::unsupported;
          why = "it says that it is version \"" + answer.version() +
                "\"; etcd 3.4 or later is needed";
        } else if (self->cluster_ && *self->cluster_ != cluster) {
          // Locks would be granted twice.
          code = Errc::invalid_argument;
          why = "it is a member of another cluster than the one we were connected to";
        } else if (answer.is_learner()) {
          why = "it is a learner, which does not answer";
        } else if (answer.leader() == 0) {
          why = "it has no leader";
        }
        if (!why.empty()) {
          self->leave({.code = code, .detail = self->server_ + ": " + why});
          return;
        }
        self->cluster_ = cluster;
        self->look_at_store();
      });
}

/// Shows whether it wants to know who we are, and whether a majority answers it.
void Connection::look_at_store() {
  pb::RangeRequest request;
  request.set_key(address_.root.empty() ? "tenure" : address_.root);
  request.set_keys_only(true);
  grpc::Question<pb::RangeResponse>::ask(
      *channel_, "/etcdserverpb.KV/Range", request,
      [self = shared_from_this(), channel = channel_](const grpc::Status& status,
                                                      const pb::RangeResponse&) {
        // Rights may be for some names only; whether they are enough is seen when a lock is asked
        // for.
        const bool is_forbidden = status.code == grpc::StatusCode::permission_denied;
        if (self->is_good(channel, is_forbidden ? grpc::Status{} : status)) {
          self->come_up();
        }
      });
}

void Connection::come_up() {
  inspection_.cancel();
  is_up_ = true;
  if (first_) {
    connect_timer_.cancel();
    std::exchange(first_, nullptr)({});
  }
  calls_.up();
}

// Who is gone?

void Connection::obey(const Verdict& verdict) {
  if (!is_up_ || verdict.next == Next::give_up) {
    return;
  }
  const auto now = grpc::Link::Clock::now();
  const bool is_known_anew = verdict.next == Next::login && now - logged_in_ > login_again_after;
  if (!is_known_anew) {
    leave(verdict.error);
    return;
  }
  // Streams keep what they have said at their beginning: all begin anew.
  is_up_ = false;
  calls_.down(verdict.error);
  if (channel_ && !is_stopped_) {
    inspect(channel_);
  }
}

void Connection::leave(const Error& why) {
  const auto channel = std::exchange(channel_, nullptr);
  const bool was_up = std::exchange(is_up_, false);
  inspection_.cancel();
  if (channel) {
    channel->close();
  }
  if (is_stopped_) {
    return;
  }
  if (was_up) {
    calls_.down(why);
  }
  if (why != Errc::unavailable) {
    calls_.refused(why);
  }
  first_failed(why);
  dialer_->dial();
}

void Connection::first_failed(const Error& why) {
  last_failure_ = why;
  if (first_ && --first_tries_left_ == 0) {
    connect_timer_.cancel();
    std::exchange(first_, nullptr)(std::unexpected(why));
  }
}

grpc::Link::KeepAlive Connection::keep_alive() const {
  const auto ttl = calls_.shortest_ttl();
  if (dialer_->knows_one_only() || (open_ == 0 && ttl == milliseconds::zero())) {
    // Without another one to go to there is no hurry.
    return {};
  }
  const auto part = ttl == milliseconds::zero() ? pong_max : ttl / parts_of_ttl;
  return {.ping_every = open_ > 0 ? silence_due : std::max(part, silence_due),
          .ping_wait = std::clamp(part, pong_min, pong_max)};
}

void Connection::check_soon() {
  const auto pause = open_ > 0 ? check_often : check_seldom;
  check_.expires_after(pause);
  check_.async_wait([weak = weak_from_this(), pause](const boost::system::error_code& error) {
    const auto self = weak.lock();
    if (error || !self || self->is_stopped_) {
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

}  // namespace tenure::backends::etcd
