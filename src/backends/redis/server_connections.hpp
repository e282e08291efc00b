#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/io_context.hpp>

#include "backends/redis/pipeline.hpp"
#include "backends/redis/replication_barrier.hpp"
#include "backends/redis/subscriber.hpp"

namespace tenure::backends::redis {

/// Connections to one server: a pipeline for commands, a subscriber for notifications and, once
/// WAIT is needed, a replication barrier. Runs on the loop's thread.
class ServerConnections {
 public:
  /// Events for the router.
  struct Callbacks {
    /// Pipeline and subscriber are connected or reconnected.
    std::function<void()> ready;
    /// A connection was lost, or could not be made.
    std::function<void(const Error&)> disconnected;
    /// The pipeline or the barrier has no unanswered command.
    std::function<void()> idle;
    /// Problem of the server's configuration.
    std::function<void(std::string)> warning;
    /// Message published to the channel.
    std::function<void(std::string_view)> message;
    /// The server did not execute the command; the text is its error reply. Not set: an error like
    /// any other.
    std::function<void(Command, std::string_view)> redirected{};
  };

  /// `channel`: channel of the notifications.
  ServerConnections(boost::asio::io_context& loop, ServerOptions server, const std::string& channel,
                    Callbacks callbacks);
  ServerConnections(const ServerConnections&) = delete;
  ServerConnections& operator=(const ServerConnections&) = delete;
  ~ServerConnections() = default;

  /// Starts pipeline and subscriber.
  void start();
  /// Pipeline and subscriber are connected.
  [[nodiscard]] bool is_ready() const noexcept {
    return pipeline_->is_ready() && subscriber_.is_ready();
  }
  /// The pipeline is connected.
  [[nodiscard]] bool is_connected() const noexcept { return pipeline_->is_ready(); }
  /// No command is unanswered.
  [[nodiscard]] bool is_idle() const;
  /// See CommandRouter::run().
  void run(Command&& command);
  void flush() { pipeline_->flush(); }
  /// Moves all connections to this endpoint.
  void move_to(const Endpoint& endpoint);
  /// Closes all connections; unanswered commands fail with this error.
  void stop(const Error& why);
  /// Closes all connections; returns the unanswered commands.
  [[nodiscard]] std::vector<Command> retire();

 private:
  void ready();

  /// Event loop that runs all handlers.
  boost::asio::io_context& loop_;
  /// Connection options of the server.
  const ServerOptions server_;
  /// Callbacks of the router.
  const Callbacks callbacks_;
  /// Connection for commands.
  std::shared_ptr<Pipeline> pipeline_;
  /// Connection for notifications.
  Subscriber subscriber_;
  /// Connection for WAIT; created by the first command that needs it.
  std::unique_ptr<ReplicationBarrier> barrier_;
};

}  // namespace tenure::backends::redis
