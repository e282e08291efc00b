#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "backends/redis/connection.hpp"

namespace tenure::backends::redis {

/// Connection that subscribes to one channel (SUBSCRIBE). Sends PING regularly, because messages on
/// a dead connection are lost and only an unanswered command reveals it. Runs on the loop's thread.
class Subscriber {
 public:
  /// Events for the owner of the subscriber.
  struct Callbacks {
    /// Subscribed, also after a reconnect. Messages published in between are lost.
    std::function<void()> ready;
    /// Message of the channel.
    std::function<void(std::string_view)> message;
    /// Connection lost, or could not be made.
    std::function<void(const Error&)> disconnected;
  };

  Subscriber(boost::asio::io_context& loop, const ServerOptions& server, const std::string& channel,
             Callbacks callbacks);

  /// Connects in the background.
  void start() { connection_->connect(); }
  /// The channel is subscribed.
  [[nodiscard]] bool is_ready() const noexcept { return connection_->is_ready(); }
  /// Reconnects, unless the connection is already to this endpoint.
  void move_to(const Endpoint& endpoint) { connection_->move_to(endpoint); }
  /// Closes the connection. No callback is called any more.
  void stop();

 private:
  /// Passes on published messages; ignores replies to PING.
  void replied(const Reply& reply);
  /// Schedules the next PING.
  void ping_later();

  /// Callbacks of the owner.
  Callbacks callbacks_;
  /// Timer of the next PING.
  boost::asio::steady_timer ping_timer_;
  /// Connection in subscriber mode.
  std::shared_ptr<Connection> connection_;
};

}  // namespace tenure::backends::redis
