#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "backends/redis/line.hpp"

namespace tenure::backends::redis {

/// The connection on which a server tells us what we wait for: one for all waits of a client. All
/// on the loop's thread.
class Waker {
 public:
  struct Calls {
    std::function<void()>
        ready;  ///< It listens, also again: in between something may have been said.
    std::function<void(std::string_view)> heard;
    std::function<void(const Error&)> lost;  ///< Or could not be connected.
  };

  Waker(boost::asio::io_context& loop, const Address& address, const std::string& channel,
        Calls calls);

  void start() { line_->dial(); }
  [[nodiscard]] bool is_ready() const noexcept { return line_->is_ready(); }
  /// The server is there now: if we are elsewhere, we go.
  void move_to(const Endpoint& endpoint) { line_->move_to(endpoint); }
  void stop();

 private:
  void replied(const Reply& reply);
  void ping_later();

  Calls calls_;
  boost::asio::steady_timer pause_;
  std::shared_ptr<Line> line_;
};

}  // namespace tenure::backends::redis
