#include "backends/redis/standalone_router.hpp"

#include <utility>

namespace tenure::backends::redis {

// NOLINTNEXTLINE(readability-function-size): five parameters, all of them needed.
StandaloneRouter::StandaloneRouter(boost::asio::io_context& loop, ServerOptions server,
                                   std::shared_ptr<SentinelResolver> sentinels,
                                   const std::string& channel, Callbacks callbacks)
    : callbacks_(std::move(callbacks)),
      sentinels_(std::move(sentinels)),
      connections_(loop, std::move(server), channel,
                   {.ready = [this] { ready(); },
                    .disconnected = [this](const Error& why) { disconnected(why); },
                    .idle = [this] { callbacks_.idle(); },
                    .warning = callbacks_.warning,
                    .message = callbacks_.message}) {}

void StandaloneRouter::start() {
  connections_.start();
  if (sentinels_) {
    sentinels_->start([this](const Endpoint& endpoint) { connections_.move_to(endpoint); });
  }
}

void StandaloneRouter::ready() {
  callbacks_.ready({});
  if (std::exchange(was_disconnected_, false)) {
    callbacks_.recovered();
  }
}

void StandaloneRouter::disconnected(const Error& why) {
  was_disconnected_ = true;
  callbacks_.disconnected(why);
}

void StandaloneRouter::stop(const Error& why) {
  if (sentinels_) {
    sentinels_->stop();
  }
  connections_.stop(why);
}

}  // namespace tenure::backends::redis
