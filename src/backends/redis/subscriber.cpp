#include "backends/redis/subscriber.hpp"

#include <array>
#include <utility>
#include <vector>

namespace tenure::backends::redis {
namespace {

/// Interval of PING. A dead connection is noticed at most this and silence_max_ later; its messages
/// are lost until then.
constexpr std::chrono::seconds ping_interval{2};

}  // namespace

Subscriber::Subscriber(boost::asio::io_context& loop, const ServerOptions& server,
                       const std::string& channel, Callbacks callbacks)
    : callbacks_(std::move(callbacks)), ping_timer_(loop) {
  std::vector<HandshakeStep> handshake{
      {.command = encode_command({"SUBSCRIBE", channel}), .check = {}}};
  connection_ = std::make_shared<Connection>(
      loop, server, std::move(handshake),
      Connection::Callbacks{.ready =
                                [this] {
                                  ping_later();
                                  callbacks_.ready();
                                },
                            .replied = [this](const Reply& r) { replied(r); },
                            .failed = [this](const Error& e) { callbacks_.disconnected(e); }});
}

void Subscriber::replied(const Reply& reply) {
  if (reply.text_at(0) == "message") {
    callbacks_.message(reply.text_at(2));
  }
}

void Subscriber::ping_later() {
  ping_timer_.expires_after(ping_interval);
  ping_timer_.async_wait([this](const boost::system::error_code& error) {
    if (error || !connection_->is_ready()) {
      return;
    }
    connection_->send(encode_command({"PING"}));
    connection_->flush();
    ping_later();
  });
}

void Subscriber::stop() {
  ping_timer_.cancel();
  connection_->stop();
}

}  // namespace tenure::backends::redis
