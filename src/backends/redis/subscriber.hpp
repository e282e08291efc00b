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

/// The connection on which a server tells us what we wait for: one for all waits of a client. All
/// on the loop's thread.
class Subscriber {
 public:
  struct Callbacks {
    std::function<void()>
        ready;  ///< It listens, also again: in between something may have been said.
    std::function<void(std::string_view)> message;
    std::function<void(const Error&)> disconnected;  ///< Or could not be connected.
  };

  Subscriber(boost::asio::io_context& loop, const ServerOptions& server, const std::string& channel,
             Callbacks callbacks);

  void start() { connection_->connect(); }
  [[nodiscard]] bool is_ready() const noexcept { return connection_->is_ready(); }
  /// The server is there now: if we are elsewhere, we go.
  void move_to(const Endpoint& endpoint) { connection_->move_to(endpoint); }
  void stop();

 private:
  void replied(const Reply& reply);
  void ping_later();

  Callbacks callbacks_;
  boost::asio::steady_timer ping_timer_;
  std::shared_ptr<Connection> connection_;
};

}  // namespace tenure::backends::redis
