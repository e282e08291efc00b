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

/// Endpoints of one service and the transport to use.
struct Servers {
  /// Endpoints in the order of the URL; at least one.
  std::vector<Endpoint> endpoints{};
  /// TLS context; null: plaintext.
  std::shared_ptr<boost::asio::ssl::context> tls{};
  /// Timeout of one connection attempt.
  std::chrono::milliseconds connect_timeout{5000};
  /// Expected service, for error messages.
  std::string kind = "a tenured";
  /// Bearer token sent with every call; empty: none.
  std::string token{};
};

/// Maps a failed status of a call to `server` to an error.
[[nodiscard]] Error error_from(const grpc::Status& status, const std::string& server);

/// Connector with retry: connects to one server after the other, in the order of an
/// EndpointSelector, until one completes the HTTP/2 handshake. Owns at most one connection attempt;
/// hands each channel over to its owner.
///
/// Not thread safe: all calls run on the event loop's thread.
class ChannelConnector : public std::enable_shared_from_this<ChannelConnector> {
 public:
  /// Events for the owner; they run on the event loop.
  struct Callbacks {
    /// Called with each established channel.
    std::function<void(const std::shared_ptr<grpc::Channel>&)> connected;
    /// Called when an attempt failed; the connector retries.
    std::function<void(const Error& why)> failed;
  };

  ChannelConnector(boost::asio::io_context& loop, Servers servers, Callbacks calls);

  /// Starts an attempt: at once in the first round, after a backoff delay later. No effect while an
  /// attempt is in progress.
  void connect();
  /// Marks the current server healthy: the next delay is short again.
  void mark_healthy() { selector_.mark_healthy(current_); }
  /// Marks the current server failed: it stopped responding.
  void mark_failed() { selector_.mark_failed(current_, EndpointSelector::Clock::now()); }
  /// Handles a redirect to the leader. Returns true if the next connect() goes there.
  [[nodiscard]] bool redirect_to(const Endpoint& leader);
  /// Allows new redirects, after the caller has paused.
  void reset_redirects() { selector_.reset_redirects(); }
  [[nodiscard]] bool has_single_endpoint() const { return selector_.size() == 1; }
  /// Stops all attempts; no callback runs afterwards.
  void stop();

 private:
  /// Starts one attempt: TCP, TLS, HTTP/2.
  void attempt(const Endpoint& endpoint);
  /// Opens the HTTP/2 connection on a connected transport.
  void handshake(const Endpoint& endpoint, std::unique_ptr<net::Transport> transport);
  /// Records a failed attempt and starts the next one.
  void failed(const Endpoint& endpoint, const Error& why);
  /// Cancels the attempt in progress, if any.
  void cancel_attempt();

  boost::asio::io_context& loop_;
  Servers servers_;
  Callbacks callbacks_;
  /// Attempt in progress; null: none.
  std::shared_ptr<net::Connector> connector_;
  /// Channel whose handshake is in progress.
  std::shared_ptr<grpc::Channel> handshaking_;
  boost::asio::steady_timer retry_timer_;
  boost::asio::steady_timer handshake_timer_;
  /// End of the current attempt.
  net::Connector::Clock::time_point deadline_{};
  EndpointSelector selector_;
  /// Endpoint of the latest established connection.
  Endpoint current_;
  bool is_connecting_ = false;
  bool is_stopped_ = false;
};

}  // namespace tenure::backends
