#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/io_context.hpp>

#include "backends/redis/command.hpp"
#include "backends/redis/pipeline.hpp"

namespace tenure::backends::redis {

/// Sees to it that what a server writes is on replicas before it counts (WAIT). On a connection of
/// its own, since WAIT stops the one it is replied on; all that is entry meanwhile shares the next
/// one. All on the loop's thread.
class ReplicationBarrier {
 public:
  struct Callbacks {
    std::function<void()> idle;
    /// As of a Pipeline; also with how many replicas. Not set: an error like any other.
    std::function<void(Command, std::uint32_t replicas, std::string_view)> redirected{};
  };
  /// An command, and who entry for how many replicas.
  struct Entry {
    Command command{};
    std::uint32_t replicas = 0;
  };

  ReplicationBarrier(boost::asio::io_context& loop, const ServerOptions& server,
                     Callbacks callbacks);

  void run(Command command, std::uint32_t replicas);
  [[nodiscard]] bool is_idle() const noexcept { return queued_.empty() && !batch_; }
  void move_to(const Endpoint& endpoint) { pipeline_->move_to(endpoint); }
  void stop(const Error& why);
  /// Does nothing any more; all that is open.
  [[nodiscard]] std::vector<Entry> retire();

 private:
  struct Batch;

  void start_batch();
  void replied(Batch& batch, std::size_t which, const Result<Command::Response>& answer);
  void wait_replied(const std::shared_ptr<Batch>& batch, const Result<Command::Response>& answer);

  Callbacks callbacks_;
  const std::chrono::milliseconds wait_timeout_;
  std::shared_ptr<Pipeline> pipeline_;
  std::deque<Entry> queued_;
  std::shared_ptr<Batch> batch_;  ///< On its way.
  std::optional<std::string>
      redirect_error_;  ///< What the server says of the command that fails now.
  bool is_started_ = false;
  bool is_stopped_ = false;
};

}  // namespace tenure::backends::redis
