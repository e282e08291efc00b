#include "backends/redis/redis_backend.hpp"

#include <algorithm>
#include <utility>

#include "backends/redis/nodes.hpp"
#include "backends/redis/one_server.hpp"
#include "backends/redis/sentinels.hpp"

namespace tenure::backends::redis {
namespace {

std::vector<Address> sentinels_of(const Deployment& deployment) {
  std::vector<Address> addresses;
  addresses.reserve(deployment.endpoints.size());
  for (const auto& endpoint : deployment.endpoints) {
    addresses.push_back({.endpoint = endpoint,
                         .part = Part::sentinel,
                         .user = deployment.sentinel_user,
                         .password = deployment.sentinel_password,
                         .tls = deployment.address.tls,
                         .timeout = deployment.address.timeout});
  }
  return addresses;
}

}  // namespace

RedisBackend::RedisBackend(const Deployment& deployment)
    : farewell_(deployment.address.timeout),
      patience_(loop()),
      commands_(deployment.address.name_space, fresh_client(),
                deployment.form == Deployment::Form::cluster ? Commands::Reach::one_slot
                                                             : Commands::Reach::any),
      carrier_(make_carrier(deployment, commands_)),
      locks_(loop(), *carrier_, commands_) {}

std::unique_ptr<Carrier> RedisBackend::make_carrier(const Deployment& deployment,
                                                    const Commands& commands) {
  Carrier::Calls calls{.ready = [this](const Concerns& concerns) { ready(concerns); },
                       .healed =
                           [this] {
                             if (!is_ending_) {
                               locks_.check_holds();
                             }
                           },
                       .lost = [this](const Error& why) { lost(why); },
                       .idle = [this] { end_if_idle(); },
                       .doubtful =
                           [this](std::string doubt) {
                             if (std::ranges::find(doubts_, doubt) == doubts_.end()) {
                               doubts_.push_back(std::move(doubt));
                             }
                           },
                       .heard =
                           [this](std::string_view message) {
                             locks_.heard(message);
                             carrier_->flush();
                           }};
  auto address = deployment.address;
  std::shared_ptr<Sentinels> sentinels;
  switch (deployment.form) {
    case Deployment::Form::cluster:
      return std::make_unique<Nodes>(loop(), deployment.endpoints, std::move(address),
                                     commands.channel(), std::move(calls));
    case Deployment::Form::sentinel:
      sentinels = std::make_shared<Sentinels>(loop(), sentinels_of(deployment), deployment.service);
      address.whereabouts = sentinels;
      break;
    case Deployment::Form::one_server: break;
  }
  return std::make_unique<OneServer>(loop(), std::move(address), std::move(sentinels),
                                     commands.channel(), std::move(calls));
}

Result<std::unique_ptr<RedisBackend>> RedisBackend::open(const Deployment& deployment,
                                                         std::chrono::milliseconds patience) {
  auto backend = std::make_unique<RedisBackend>(deployment);
  backend->do_now([raw = backend.get()] { raw->carrier_->start(); });
  // A little more, for those who know why to say so.
  const auto longest = patience + patience / 10;
  backend->parker().wait(backend->opened_, std::chrono::steady_clock::now() + longest);
  if (!backend->opened_.is_signalled()) {
    return fail(Errc::unavailable, deployment.name() + ": no answer");
  }
  if (!*backend->first_) {
    return std::unexpected(backend->first_->error());
  }
  return backend;
}

RedisBackend::~RedisBackend() {
  do_now([this] {
    is_ending_ = true;
    listener_ = nullptr;
    locks_.end();
    patience_.expires_after(carrier_->is_ready() ? farewell_ : std::chrono::milliseconds(0));
    patience_.async_wait([this](const boost::system::error_code& error) {
      if (!error) {
        parker().signal(ended_);
      }
    });
    end_if_idle();
  });
  parker().wait(ended_, std::nullopt);
  // What is on its way ends with the lines.
  do_now([this] {
    patience_.cancel();
    carrier_->stop({.code = Errc::unavailable, .detail = "the client ends"});
  });
  stop();
}

std::vector<std::string> RedisBackend::doubts() {
  return doubts_;
}

void RedisBackend::end_if_idle() {
  if (is_ending_ && carrier_->is_idle()) {
    parker().signal(ended_);
  }
}

void RedisBackend::ready(const Concerns& concerns) {
  if (is_ending_) {
    return;
  }
  locks_.ask_again(concerns);
  if (!carrier_->is_ready()) {
    return;
  }
  if (!first_) {
    first_ = Result<void>();
    parker().signal(opened_);
  }
  if (listener_ != nullptr && !std::exchange(is_told_connected_, true)) {
    listener_->connection_changed(true, {});
  }
}

void RedisBackend::lost(const Error& why) {
  if (!first_) {
    first_ = std::unexpected(why);
    parker().signal(opened_);
  }
  if (listener_ != nullptr && std::exchange(is_told_connected_, false)) {
    listener_->connection_changed(false, why.detail);
  }
  if (is_ending_) {
    parker().signal(ended_);
  }
}

Promises RedisBackend::promises() const noexcept {
  return {Promise::fencing, Promise::fifo,      Promise::shared,   Promise::semaphore,
          Promise::upgrade, Promise::downgrade, Promise::reentry,  Promise::one_lease,
          Promise::barging, Promise::new_ttl,   Promise::replicas, Promise::outlives_process};
}

Bounds RedisBackend::bounds() const noexcept {
  return {};
}

void RedisBackend::start(Listener& listener) {
  post([this, &listener] {
    listener_ = &listener;
    locks_.listen(&listener);
    if (carrier_->is_ready()) {
      is_told_connected_ = true;
      listener.connection_changed(true, {});
    }
  });
}

void RedisBackend::downgrade(DowngradeRequest request, Done<void> done) {
  post([this, request = std::move(request), done = std::move(done)]() mutable {
    locks_.downgrade(request, std::move(done));
  });
}

}  // namespace tenure::backends::redis
