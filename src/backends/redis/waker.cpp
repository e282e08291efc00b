#include "backends/redis/waker.hpp"

#include <array>
#include <utility>
#include <vector>

namespace tenure::backends::redis {
namespace {

/// How often we look whether the connection still carries anything: what is said on a dead one is
/// lost, and found out only then.
constexpr std::chrono::seconds ping_every{2};

}  // namespace

Waker::Waker(boost::asio::io_context& loop, const Address& address, const std::string& channel,
             Calls calls)
    : calls_(std::move(calls)), pause_(loop) {
  std::vector<Step> greeting{{.command = command_of({"SUBSCRIBE", channel}), .check = {}}};
  line_ = std::make_shared<Line>(loop, address, std::move(greeting),
                                 Line::Calls{.ready =
                                                 [this] {
                                                   ping_later();
                                                   calls_.ready();
                                                 },
                                             .replied = [this](const Reply& r) { replied(r); },
                                             .failed = [this](const Error& e) { calls_.lost(e); }});
}

void Waker::replied(const Reply& reply) {
  if (reply.text_at(0) == "message") {
    calls_.heard(reply.text_at(2));
  }
}

void Waker::ping_later() {
  pause_.expires_after(ping_every);
  pause_.async_wait([this](const boost::system::error_code& error) {
    if (error || !line_->is_ready()) {
      return;
    }
    line_->send(command_of({"PING"}));
    line_->flush();
    ping_later();
  });
}

void Waker::stop() {
  pause_.cancel();
  line_->stop();
}

}  // namespace tenure::backends::redis
