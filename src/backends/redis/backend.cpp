#include "backends/redis/backend.hpp"

#include <algorithm>
#include <utility>

#include "backends/redis/cluster_router.hpp"
#include "backends/redis/sentinel_resolver.hpp"
#include "backends/redis/standalone_router.hpp"

namespace tenure::backends::redis {
namespace {

/// Connection options of the Sentinels.
std::vector<ServerOptions> sentinels_of(const Deployment& deployment) {
  std::vector<ServerOptions> servers;
  servers.reserve(deployment.endpoints.size());
  for (const auto& endpoint : deployment.endpoints) {
    servers.push_back({.endpoint = endpoint,
                       .role = ServerRole::sentinel,
                       .user = deployment.sentinel_user,
                       .password = deployment.sentinel_password,
                       .tls = deployment.server.tls,
                       .timeout = deployment.server.timeout});
  }
  return servers;
}

}  // namespace

RedisBackend::RedisBackend(const Deployment& deployment)
    : drain_timeout_(deployment.server.timeout),
      drain_timer_(loop()),
      encoder_(deployment.server.name_space, new_client_id(),
               deployment.form == Deployment::Form::cluster ? CommandEncoder::KeyScope::one_slot
                                                            : CommandEncoder::KeyScope::any),
      router_(make_router(deployment, encoder_)),
      locks_(loop(), *router_, encoder_) {}

std::unique_ptr<CommandRouter> RedisBackend::make_router(const Deployment& deployment,
                                                         const CommandEncoder& encoder) {
  CommandRouter::Callbacks callbacks{
      .ready = [this](const KeyFilter& affected) { ready(affected); },
      .recovered =
          [this] {
            if (!is_ending_) {
              locks_.verify_holds();
            }
          },
      .disconnected = [this](const Error& why) { disconnected(why); },
      .idle = [this] { signal_if_drained(); },
      .warning =
          [this](std::string warning) {
            if (std::ranges::find(warnings_, warning) == warnings_.end()) {
              warnings_.push_back(std::move(warning));
            }
          },
      .message =
          [this](std::string_view message) {
            locks_.handle_message(message);
            router_->flush();
          }};
  auto server = deployment.server;
  std::shared_ptr<SentinelResolver> sentinels;
  switch (deployment.form) {
    case Deployment::Form::cluster:
      return std::make_unique<ClusterRouter>(loop(), deployment.endpoints, std::move(server),
                                             encoder.channel(), std::move(callbacks));
    case Deployment::Form::sentinel:
      sentinels =
          std::make_shared<SentinelResolver>(loop(), sentinels_of(deployment), deployment.service);
      server.resolve = [sentinels](OnResolved on_resolved) {
        sentinels->resolve(std::move(on_resolved));
      };
      break;
    case Deployment::Form::one_server: break;
  }
  return std::make_unique<StandaloneRouter>(loop(), std::move(server), std::move(sentinels),
                                            encoder.channel(), std::move(callbacks));
}

Result<std::unique_ptr<RedisBackend>> RedisBackend::open(const Deployment& deployment,
                                                         std::chrono::milliseconds timeout) {
  auto backend = std::make_unique<RedisBackend>(deployment);
  backend->do_now([raw = backend.get()] { raw->router_->start(); });
  // A little more than the timeout of the connections, so that their error arrives first and names
  // the reason.
  const auto longest = timeout + timeout / 10;
  backend->parker().wait(backend->opened_, std::chrono::steady_clock::now() + longest);
  if (!backend->opened_.is_signalled()) {
    return fail(Errc::unavailable, deployment.name() + ": no reply in time");
  }
  if (!*backend->open_result_) {
    return std::unexpected(backend->open_result_->error());
  }
  return backend;
}

/// Releases all holds and waits for the replies, at most drain_timeout_.
RedisBackend::~RedisBackend() {
  do_now([this] {
    is_ending_ = true;
    listener_ = nullptr;
    locks_.end();
    drain_timer_.expires_after(router_->is_ready() ? drain_timeout_ : std::chrono::milliseconds(0));
    drain_timer_.async_wait([this](const boost::system::error_code& error) {
      if (!error) {
        parker().signal(drained_);
      }
    });
    signal_if_drained();
  });
  parker().wait(drained_, std::nullopt);
  do_now([this] {
    drain_timer_.cancel();
    router_->stop({.code = Errc::unavailable, .detail = "the client is closing"});
  });
  stop();
}

std::vector<std::string> RedisBackend::warnings() {
  return warnings_;
}

void RedisBackend::signal_if_drained() {
  if (is_ending_ && router_->is_idle()) {
    parker().signal(drained_);
  }
}

void RedisBackend::ready(const KeyFilter& affected) {
  if (is_ending_) {
    return;
  }
  locks_.resend_waits(affected);
  if (!router_->is_ready()) {
    return;
  }
  if (!open_result_) {
    open_result_ = Result<void>();
    parker().signal(opened_);
  }
  if (listener_ != nullptr && !std::exchange(is_reported_connected_, true)) {
    listener_->connection_changed(true, {});
  }
}

void RedisBackend::disconnected(const Error& why) {
  if (!open_result_) {
    open_result_ = std::unexpected(why);
    parker().signal(opened_);
  }
  if (listener_ != nullptr && std::exchange(is_reported_connected_, false)) {
    listener_->connection_changed(false, why.detail);
  }
  if (is_ending_) {
    parker().signal(drained_);
  }
}

Capabilities RedisBackend::capabilities() const noexcept {
  return {Capability::fencing,   Capability::fifo,      Capability::shared,
          Capability::semaphore, Capability::upgrade,   Capability::downgrade,
          Capability::reentry,   Capability::one_lease, Capability::barging,
          Capability::new_ttl,   Capability::replicas,  Capability::outlives_process};
}

void RedisBackend::start(Listener& listener) {
  post([this, &listener] {
    listener_ = &listener;
    locks_.listen(&listener);
    if (router_->is_ready()) {
      is_reported_connected_ = true;
      listener.connection_changed(true, {});
    }
  });
}

}  // namespace tenure::backends::redis
