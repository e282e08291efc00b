#include "backends/redis/server_connections.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace tenure::backends::redis {

ServerConnections::ServerConnections(boost::asio::io_context& loop, ServerOptions server,
                                     const std::string& channel, Callbacks callbacks)
    : loop_(loop),
      server_(std::move(server)),
      callbacks_(std::move(callbacks)),
      pipeline_(
          std::make_shared<Pipeline>(loop, server_,
                                     Pipeline::Callbacks{.ready = [this] { ready(); },
                                                         .disconnected = callbacks_.disconnected,
                                                         .idle = callbacks_.idle,
                                                         .warning = callbacks_.warning,
                                                         .redirected = callbacks_.redirected})),
      subscriber_(loop, server_, channel,
                  Subscriber::Callbacks{.ready = [this] { ready(); },
                                        .message = callbacks_.message,
                                        .disconnected =
                                            [this](const Error& why) {
                                              // A dead host breaks both connections, but an idle
                                              // pipeline notices only by an unanswered command.
                                              pipeline_->ping_if_idle();
                                              callbacks_.disconnected(why);
                                            }}) {}

void ServerConnections::start() {
  pipeline_->start();
  subscriber_.start();
}

void ServerConnections::ready() {
  if (is_ready()) {
    callbacks_.ready();
  }
}

bool ServerConnections::is_idle() const {
  return pipeline_->is_idle() && (!barrier_ || barrier_->is_idle());
}

void ServerConnections::run(Command&& command) {
  if (command.replicas == 0) {
    pipeline_->run(std::move(command));
    return;
  }
  if (!barrier_) {
    barrier_ = std::make_unique<ReplicationBarrier>(
        loop_, server_,
        ReplicationBarrier::Callbacks{.idle = callbacks_.idle,
                                      .redirected = callbacks_.redirected});
  }
  barrier_->run(std::move(command));
}

void ServerConnections::move_to(const Endpoint& endpoint) {
  pipeline_->move_to(endpoint);
  subscriber_.move_to(endpoint);
  if (barrier_) {
    barrier_->move_to(endpoint);
  }
}

std::vector<Command> ServerConnections::retire() {
  subscriber_.stop();
  auto rest = pipeline_->retire();
  if (barrier_) {
    std::ranges::move(barrier_->retire(), std::back_inserter(rest));
  }
  return rest;
}

void ServerConnections::stop(const Error& why) {
  for (auto& command : retire()) {
    command.complete(std::unexpected(why));
  }
}

}  // namespace tenure::backends::redis
