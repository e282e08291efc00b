#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>

#include "backends/cluster/servers.hpp"
#include "backends/url.hpp"
#include "h2/channel.hpp"

namespace tenure::backends::cluster {

/// Makes connections, one after the other, to whichever server answers. All on the loop's thread.
class Dialer : public std::enable_shared_from_this<Dialer> {
 public:
  struct Calls {
    /// A connection stands.
    std::function<void(const std::shared_ptr<h2::Channel>&)> connected;
    /// None does, and why; it is tried again.
    std::function<void(const Error& why)> failed;
  };

  Dialer(boost::asio::io_context& loop, Servers servers, Calls calls);

  /// Connects, at once the first time and after a pause when it failed before. Nothing happens if
  /// that is under way.
  void dial();
  /// It works: the next pause is short again.
  void praise() { failures_ = 0; }
  /// It does not: the next attempt waits a little.
  void blame() { ++failures_; }
  void stop();

 private:
  using tcp = boost::asio::ip::tcp;

  void try_next();
  void resolved(const Endpoint& endpoint, const tcp::resolver::results_type& found);
  void greet(const Endpoint& endpoint, tcp::socket socket);
  void failed(const Endpoint& endpoint, const h2::Status& why);

  boost::asio::io_context& loop_;
  Servers servers_;
  Calls calls_;
  tcp::resolver resolver_;
  std::shared_ptr<tcp::socket> socket_;   ///< Being connected.
  std::shared_ptr<h2::Channel> greeted_;  ///< Being greeted.
  boost::asio::steady_timer pause_;
  boost::asio::steady_timer patience_;
  std::size_t next_ = 0;
  std::size_t failures_ = 0;
  std::size_t attempt_ = 0;  ///< What comes from an older one is ignored.
  bool is_dialing_ = false;
  bool is_stopped_ = false;
};

}  // namespace tenure::backends::cluster
