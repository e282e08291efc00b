#include "backends/redis/standalone_router.hpp"

#include <utility>

namespace tenure::backends::redis {

// NOLINTNEXTLINE(readability-function-size): five parameters, all of them needed.
StandaloneRouter::StandaloneRouter(boost::asio::io_context& loop, ServerOptions server,
                                   std::shared_ptr<SentinelResolver> sentinels,
                                   const std::string& channel, Callbacks callbacks)
    : loop_(loop),
      server_(std::move(server)),
      callbacks_(std::move(callbacks)),
      sentinels_(std::move(sentinels)),
      pipeline_(std::make_shared<Pipeline>(
          loop, server_,
          Pipeline::Callbacks{.ready = [this] { ready(); },
                              .disconnected = [this](const Error& why) { disconnected(why); },
                              .idle = [this] { callbacks_.idle(); },
                              .warning = callbacks_.warning})),
      subscriber_(loop, server_, channel,
                  Subscriber::Callbacks{
                      .ready = [this] { ready(); },
                      .message = [this](std::string_view message) { callbacks_.message(message); },
                      .disconnected =
                          [this](const Error& why) {
                            // A dead host breaks both connections, but an idle pipeline notices
                            // only by an unanswered command.
                            pipeline_->ping_if_idle();
                            disconnected(why);
                          }}) {}

void StandaloneRouter::start() {
  pipeline_->start();
  subscriber_.start();
  if (sentinels_) {
    sentinels_->start([this](const Endpoint& endpoint) { primary_changed(endpoint); });
  }
}

void StandaloneRouter::ready() {
  if (!is_ready()) {
    return;
  }
  callbacks_.ready({});
  if (std::exchange(was_disconnected_, false)) {
    callbacks_.recovered();
  }
}

void StandaloneRouter::disconnected(const Error& why) {
  was_disconnected_ = true;
  callbacks_.disconnected(why);
}

void StandaloneRouter::primary_changed(const Endpoint& endpoint) {
  pipeline_->move_to(endpoint);
  subscriber_.move_to(endpoint);
  if (barrier_) {
    barrier_->move_to(endpoint);
  }
}

bool StandaloneRouter::is_idle() const {
  return pipeline_->is_idle() && (!barrier_ || barrier_->is_idle());
}

void StandaloneRouter::run_replicated(Command command, std::uint32_t replicas) {
  if (!barrier_) {
    barrier_ = std::make_unique<ReplicationBarrier>(
        loop_, server_, ReplicationBarrier::Callbacks{.idle = [this] { callbacks_.idle(); }});
  }
  barrier_->run(std::move(command), replicas);
}

void StandaloneRouter::stop(const Error& why) {
  if (sentinels_) {
    sentinels_->stop();
  }
  subscriber_.stop();
  if (barrier_) {
    barrier_->stop(why);
  }
  pipeline_->stop(why);
}

}  // namespace tenure::backends::redis
