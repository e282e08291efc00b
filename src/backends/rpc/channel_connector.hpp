#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <tenure/error.hpp>

#include "backends/rpc/endpoint_selector.hpp"
#include "backends/url.hpp"
#include "grpc/channel.hpp"
#include "net/connector.hpp"

namespace tenure::backends {

/// Where the servers of one service are, and how they are spoken to.
struct Servers {
  std::vector<Endpoint> endpoints{};                 ///< At least one.
  std::shared_ptr<boost::asio::ssl::context> tls{};  ///< Null: plain text.
  std::chrono::milliseconds connect_timeout{5000};   ///< For each.
  std::string kind = "a tenured";                    ///< What should run there, for people.
  std::string token{};                               ///< Shown with every call, if there is one.
};

/// How a call at `server` ended, if not well.
[[nodiscard]] Error error_from(const grpc::Status& status, const std::string& server);

/// Makes connections, one after the other, to whichever server answers, in the order of an
/// EndpointSelector. All on the loop's thread.
class ChannelConnector : public std::enable_shared_from_this<ChannelConnector> {
 public:
  struct Callbacks {
    /// A connection stands.
    std::function<void(const std::shared_ptr<grpc::Channel>&)> connected;
    /// None does, and why; it is tried again.
    std::function<void(const Error& why)> failed;
  };

  ChannelConnector(boost::asio::io_context& loop, Servers servers, Callbacks calls);

  /// Connects, at once the first time and after a pause when it failed before. Nothing happens if
  /// that is under way.
  void connect();
  /// The one that we reached works: the next pause is short again.
  void mark_healthy() { selector_.mark_healthy(current_); }
  /// It does not answer any more.
  void mark_failed() { selector_.mark_failed(current_, EndpointSelector::Clock::now()); }
  /// It says that this one leads. True: the next dial() goes there.
  [[nodiscard]] bool redirect_to(const Endpoint& leader);
  /// A pause was made before it is asked again who leads.
  void reset_redirects() { selector_.reset_redirects(); }
  [[nodiscard]] bool has_single_endpoint() const { return selector_.size() == 1; }
  void stop();

 private:
  void attempt(const Endpoint& endpoint);
  void handshake(const Endpoint& endpoint, std::unique_ptr<net::Transport> transport);
  void failed(const Endpoint& endpoint, const Error& why);
  /// Gives up the connection that is being made, if there is one.
  void cancel_attempt();

  boost::asio::io_context& loop_;
  Servers servers_;
  Callbacks callbacks_;
  std::shared_ptr<net::Connector> connector_;   ///< Null: no connection is being made.
  std::shared_ptr<grpc::Channel> handshaking_;  ///< Being greeted.
  boost::asio::steady_timer retry_timer_;
  boost::asio::steady_timer handshake_timer_;
  net::Connector::Clock::time_point deadline_{};  ///< End of the current attempt.
  EndpointSelector selector_;
  Endpoint current_;  ///< With whom the last connection stands, or stood.
  bool is_connecting_ = false;
  bool is_stopped_ = false;
};

}  // namespace tenure::backends
