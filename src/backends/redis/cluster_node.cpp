#include "backends/redis/cluster_node.hpp"

#include <algorithm>
#include <iterator>

namespace tenure::backends::redis {

// NOLINTNEXTLINE(readability-function-size): five parameters, all of them needed.
ClusterNode::ClusterNode(boost::asio::io_context& loop, SlotTable::Owner owner,
                         ServerOptions server, const std::string& channel, Callbacks callbacks)
    : loop_(loop),
      owner_(std::move(owner)),
      server_(std::move(server)),
      callbacks_(std::move(callbacks)),
      pipeline_(std::make_shared<Pipeline>(
          loop, server_,
          Pipeline::Callbacks{.ready = [this] { ready(); },
                              .disconnected = callbacks_.disconnected,
                              .idle = callbacks_.idle,
                              .warning = callbacks_.warning,
                              .redirected =
                                  [this](Command command, std::string_view words) {
                                    callbacks_.redirected(std::move(command), 0, words, *this);
                                  }})),
      // PUBLISH reaches the subscribers of all nodes, but returns only the number of those on the
      // publishing node. A channel for each node makes this number reliable: a client subscribes to
      // it at that node only.
      subscriber_(loop, server_, channel + ":" + owner_.id,
                  Subscriber::Callbacks{
                      .ready = [this] { ready(); },
                      .message = [this](std::string_view message) { callbacks_.message(message); },
                      .disconnected =
                          [this](const Error& why) {
                            // A dead host breaks both connections, but an idle pipeline notices
                            // only by an unanswered command.
                            pipeline_->ping_if_idle();
                            callbacks_.disconnected(why);
                          }}) {}

void ClusterNode::start() {
  pipeline_->start();
  subscriber_.start();
}

void ClusterNode::ready() {
  if (is_ready()) {
    callbacks_.ready(*this);
  }
}

bool ClusterNode::is_idle() const {
  return pipeline_->is_idle() && (!barrier_ || barrier_->is_idle());
}

void ClusterNode::run_replicated(Command command, std::uint32_t replicas) {
  if (!barrier_) {
    barrier_ = std::make_unique<ReplicationBarrier>(
        loop_, server_,
        ReplicationBarrier::Callbacks{
            .idle = callbacks_.idle,
            .redirected = [this](Command strayed, std::uint32_t wanted, std::string_view words) {
              callbacks_.redirected(std::move(strayed), wanted, words, *this);
            }});
  }
  barrier_->run(std::move(command), replicas);
}

std::vector<ReplicationBarrier::Entry> ClusterNode::retire() {
  subscriber_.stop();
  std::vector<ReplicationBarrier::Entry> rest;
  for (auto& command : pipeline_->retire()) {
    rest.push_back({.command = std::move(command)});
  }
  if (barrier_) {
    std::ranges::move(barrier_->retire(), std::back_inserter(rest));
  }
  return rest;
}

void ClusterNode::stop(const Error& why) {
  for (auto& rest : retire()) {
    rest.command.complete(std::unexpected(why));
  }
}

}  // namespace tenure::backends::redis
