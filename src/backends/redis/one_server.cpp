#include "backends/redis/one_server.hpp"

#include <utility>

namespace tenure::backends::redis {

// NOLINTNEXTLINE(readability-function-size): five parameters, all of them needed.
OneServer::OneServer(boost::asio::io_context& loop, Address address,
                     std::shared_ptr<Sentinels> sentinels, const std::string& channel, Calls calls)
    : loop_(loop),
      address_(std::move(address)),
      calls_(std::move(calls)),
      sentinels_(std::move(sentinels)),
      pipeline_(std::make_shared<Pipeline>(
          loop, address_,
          Pipeline::Calls{.ready = [this] { ready(); },
                          .lost = [this](const Error& why) { lost(why); },
                          .idle = [this] { calls_.idle(); },
                          .doubtful = calls_.doubtful})),
      ear_(loop, address_, channel,
           Waker::Calls{.ready = [this] { ready(); },
                        .heard = [this](std::string_view message) { calls_.heard(message); },
                        .lost =
                            [this](const Error& why) {
                              // A dead host takes the other connection with it.
                              pipeline_->ping_if_idle();
                              lost(why);
                            }}) {}

void OneServer::start() {
  pipeline_->start();
  ear_.start();
  if (sentinels_) {
    sentinels_->start([this](const Endpoint& endpoint) { moved(endpoint); });
  }
}

void OneServer::ready() {
  if (!is_ready()) {
    return;
  }
  calls_.ready({});
  if (std::exchange(was_lost_, false)) {
    calls_.healed();
  }
}

void OneServer::lost(const Error& why) {
  was_lost_ = true;
  calls_.lost(why);
}

void OneServer::moved(const Endpoint& endpoint) {
  pipeline_->move_to(endpoint);
  ear_.move_to(endpoint);
  if (witness_) {
    witness_->move_to(endpoint);
  }
}

bool OneServer::is_idle() const {
  return pipeline_->is_idle() && (!witness_ || witness_->is_idle());
}

void OneServer::run_replicated(Errand errand, std::uint32_t replicas) {
  if (!witness_) {
    witness_ = std::make_unique<Witness>(loop_, address_,
                                         Witness::Calls{.idle = [this] { calls_.idle(); }});
  }
  witness_->run(std::move(errand), replicas);
}

void OneServer::stop(const Error& why) {
  if (sentinels_) {
    sentinels_->stop();
  }
  ear_.stop();
  if (witness_) {
    witness_->stop(why);
  }
  pipeline_->stop(why);
}

}  // namespace tenure::backends::redis
