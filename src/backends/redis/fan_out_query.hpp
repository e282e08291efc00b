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

/// Asks several servers the same at the same time, each over a connection that ends with its
/// answer; one that is dead or hangs costs a grace and not its timeout. All on the loop's thread.
class FanOutQuery : public std::enable_shared_from_this<FanOutQuery> {
 public:
  struct Options {
    /// What to ask this one; `check` takes the answer, or says why it is none.
    std::function<std::vector<HandshakeStep>(std::size_t which)> steps;
    /// Called once, with what those who did not answer said, or nothing, in the order of the
    /// servers: when all have answered, or a grace after the first who did, or when time is up.
    std::function<void(const std::vector<Result<void>>&)> done;
    /// When this says so it is over at once; may be null.
    std::function<bool()> is_enough{};
    /// How long the others have after the first.
    std::chrono::milliseconds grace{200};
  };

  /// `servers`: at least one. Their timeouts are those of the poll.
  FanOutQuery(boost::asio::io_context& loop, std::vector<ServerOptions> servers, Options options);

  void start();
  /// Nobody is called any more.
  void stop();

 private:
  void completed(std::size_t which, Result<void> result);
  void finish();

  boost::asio::io_context& loop_;
  const std::vector<ServerOptions> servers_;
  Options options_;
  boost::asio::steady_timer grace_timer_;
  std::vector<std::shared_ptr<Connection>> connections_;
  std::vector<Result<void>> results_;
  std::size_t pending_ = 0;
  bool has_answer_ = false;
  bool is_over_ = false;
};

/// "a:1: refused; b:2: no answer", of those who did not answer.
[[nodiscard]] std::string join_errors(const std::vector<Result<void>>& answers);

}  // namespace tenure::backends::redis
