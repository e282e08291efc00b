#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <tenure/error.hpp>

#include "backends/redis/connection.hpp"

namespace tenure::backends::redis {

/// Fan-out query: runs the same handshake steps on several servers concurrently, each over a
/// connection that is closed after its reply. After the first reply the others get a short grace
/// period, so that a dead or hung server delays the query by `grace` and not by its timeout. Runs
/// on the loop's thread.
class FanOutQuery : public std::enable_shared_from_this<FanOutQuery> {
 public:
  /// Steps and callbacks of a query.
  struct Options {
    /// Handshake steps for a server; their checks store its reply.
    std::function<std::vector<HandshakeStep>(std::size_t which)> steps;
    /// Called once, with the result of each server in the order of the servers: when all have
    /// replied, when `is_enough` is true, or when the grace period ends.
    std::function<void(const std::vector<Result<void>>&)> done;
    /// Completes the query early after a reply; null: never.
    std::function<bool()> is_enough{};
    /// Time that the other servers have after the first reply.
    std::chrono::milliseconds grace{200};
  };

  /// `servers`: at least one. Their timeouts bound the query.
  FanOutQuery(boost::asio::io_context& loop, std::vector<ServerOptions> servers, Options options);

  /// Connects to all servers.
  void start();
  /// Closes all connections. No callback is called any more.
  void stop();

 private:
  /// Records the result of one server.
  void completed(std::size_t which, Result<void> result);
  /// Ends the query and calls Options::done.
  void finish();

  /// Event loop that runs all handlers.
  boost::asio::io_context& loop_;
  /// Servers to query.
  const std::vector<ServerOptions> servers_;
  /// Steps and callbacks.
  Options options_;
  /// Timer of the grace period.
  boost::asio::steady_timer grace_timer_;
  /// Connection to each server, in their order.
  std::vector<std::shared_ptr<Connection>> connections_;
  /// Result of each server; an error until it replies.
  std::vector<Result<void>> results_;
  /// Number of servers without a result.
  std::size_t pending_ = 0;
  /// A server has replied, so the grace period runs.
  bool has_answer_ = false;
  /// The query has ended.
  bool is_over_ = false;
};

/// All errors in one text, such as "a:1: refused; b:2: no answer".
[[nodiscard]] std::string join_errors(const std::vector<Result<void>>& answers);

}  // namespace tenure::backends::redis
