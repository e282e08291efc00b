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

/// Replication barrier: runs commands and completes them only after WAIT has confirmed that enough
/// replicas have received them. Uses a connection of its own, because WAIT blocks all later
/// commands of a connection. Commands that arrive while a WAIT is in progress share the next one.
/// Runs on the loop's thread.
class ReplicationBarrier {
 public:
  /// Events for the owner of the barrier.
  struct Callbacks {
    /// No command is queued or in progress.
    std::function<void()> idle;
    /// As in Pipeline::Callbacks. Not set: an error like any other.
    std::function<void(Command, std::string_view)> redirected{};
  };

  ReplicationBarrier(boost::asio::io_context& loop, const ServerOptions& server,
                     Callbacks callbacks);

  /// Queues a command, and sends it unless a WAIT is in progress. REQUIRES: Command::replicas > 0.
  void run(Command command);
  /// No command is queued or in progress.
  [[nodiscard]] bool is_idle() const noexcept { return queued_.empty() && !batch_; }
  /// Reconnects, unless the connection is already to this endpoint.
  void move_to(const Endpoint& endpoint) { pipeline_->move_to(endpoint); }
  /// Closes the connection; unanswered commands fail with this error.
  void stop(const Error& why);
  /// Closes the connection; returns the unanswered commands.
  [[nodiscard]] std::vector<Command> retire();

 private:
  /// Commands that share one WAIT.
  struct Batch;

  /// Sends the queued commands that need the same number of replicas, and one WAIT.
  void start_batch();
  /// Reply to a command of a batch; keeps it until the WAIT is answered.
  void replied(Batch& batch, std::size_t which, const Result<Command::Response>& answer);
  /// Reply to the WAIT: completes the batch.
  void wait_replied(const std::shared_ptr<Batch>& batch, const Result<Command::Response>& answer);

  /// Callbacks of the owner.
  Callbacks callbacks_;
  /// Time that the replicas have.
  const std::chrono::milliseconds wait_timeout_;
  /// Connection for the commands and the WAIT.
  std::shared_ptr<Pipeline> pipeline_;
  /// Commands for the next batches.
  std::deque<Command> queued_;
  /// Batch in progress; null: none.
  std::shared_ptr<Batch> batch_;
  /// Error reply of the redirected command whose completion is in progress.
  std::optional<std::string> redirect_error_;
  /// The connection was started, by the first command.
  bool is_started_ = false;
  /// stop() or retire() was called.
  bool is_stopped_ = false;
};

}  // namespace tenure::backends::redis
