#include "backends/redis/node.hpp"

#include <algorithm>
#include <iterator>

namespace tenure::backends::redis {

// NOLINTNEXTLINE(readability-function-size): five parameters, all of them needed.
Node::Node(boost::asio::io_context& loop, SlotTable::Owner owner, Address address,
           const std::string& channel, Calls calls)
    : loop_(loop),
      owner_(std::move(owner)),
      address_(std::move(address)),
      calls_(std::move(calls)),
      pipeline_(std::make_shared<Pipeline>(
          loop, address_,
          Pipeline::Calls{.ready = [this] { ready(); },
                          .lost = calls_.lost,
                          .idle = calls_.idle,
                          .doubtful = calls_.doubtful,
                          .astray =
                              [this](Errand errand, std::string_view words) {
                                calls_.astray(std::move(errand), 0, words, *this);
                              }})),
      // What is published reaches every node, but who publishes is told of those who heard it here;
      // so each node has a channel that is listened to at that node only.
      ear_(loop, address_, channel + ":" + owner_.id,
           Waker::Calls{.ready = [this] { ready(); },
                        .heard = [this](std::string_view message) { calls_.heard(message); },
                        .lost =
                            [this](const Error& why) {
                              // A dead host takes the other connection with it.
                              pipeline_->ping_if_idle();
                              calls_.lost(why);
                            }}) {}

void Node::start() {
  pipeline_->start();
  ear_.start();
}

void Node::ready() {
  if (is_ready()) {
    calls_.ready(*this);
  }
}

bool Node::is_idle() const {
  return pipeline_->is_idle() && (!witness_ || witness_->is_idle());
}

void Node::run_replicated(Errand errand, std::uint32_t replicas) {
  if (!witness_) {
    witness_ = std::make_unique<Witness>(
        loop_, address_,
        Witness::Calls{
            .idle = calls_.idle,
            .astray = [this](Errand strayed, std::uint32_t wanted, std::string_view words) {
              calls_.astray(std::move(strayed), wanted, words, *this);
            }});
  }
  witness_->run(std::move(errand), replicas);
}

std::vector<Witness::Case> Node::retire() {
  ear_.stop();
  std::vector<Witness::Case> rest;
  for (auto& errand : pipeline_->retire()) {
    rest.push_back({.errand = std::move(errand)});
  }
  if (witness_) {
    std::ranges::move(witness_->retire(), std::back_inserter(rest));
  }
  return rest;
}

void Node::stop(const Error& why) {
  for (auto& rest : retire()) {
    rest.errand.tell(std::unexpected(why));
  }
}

}  // namespace tenure::backends::redis
