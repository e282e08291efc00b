#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <boost/asio/io_context.hpp>

#include "backends/redis/pipeline.hpp"
#include "backends/redis/replication_barrier.hpp"
#include "backends/redis/slots.hpp"
#include "backends/redis/subscriber.hpp"

namespace tenure::backends::redis {

/// Connections to one cluster node: a pipeline for commands, a subscriber for notifications and,
/// once WAIT is needed, a replication barrier. Runs on the loop's thread.
class ClusterNode {
 public:
  /// Events for the router.
  struct Callbacks {
    /// Pipeline and subscriber are connected or reconnected.
    std::function<void(const ClusterNode&)> ready;
    /// A connection was lost, or could not be made.
    std::function<void(const Error&)> disconnected;
    /// The pipeline or the barrier has no unanswered command.
    std::function<void()> idle;
    /// Problem of the node's configuration.
    std::function<void(std::string)> warning;
    /// Message published to the channel of this node.
    std::function<void(std::string_view)> message;
    /// The node did not execute the command; `words` is its error reply. `replicas`: as in
    /// run_replicated(), 0 otherwise.
    std::function<void(Command, std::uint32_t replicas, std::string_view words, const ClusterNode&)>
        redirected;
  };

  /// `server`: endpoint and options of this node. `channel`: prefix of the channel name; the node's
  /// id is appended.
  ClusterNode(boost::asio::io_context& loop, SlotTable::Owner owner, ServerOptions server,
              const std::string& channel, Callbacks callbacks);

  /// Starts both connections.
  void start();
  [[nodiscard]] const SlotTable::Owner& owner() const noexcept { return owner_; }
  /// Pipeline and subscriber are connected.
  [[nodiscard]] bool is_ready() const noexcept {
    return pipeline_->is_ready() && subscriber_.is_ready();
  }
  /// The pipeline is connected.
  [[nodiscard]] bool is_connected() const noexcept { return pipeline_->is_ready(); }
  /// No command is unanswered.
  [[nodiscard]] bool is_idle() const;
  /// Queues a command for the next flush().
  void run(Command&& command) { pipeline_->run(std::move(command)); }
  /// See CommandRouter::run_replicated().
  void run_replicated(Command command, std::uint32_t replicas);
  void flush() { pipeline_->flush(); }
  /// Closes all connections; unanswered commands fail with this error.
  void stop(const Error& why);
  /// Closes all connections; returns the unanswered commands.
  [[nodiscard]] std::vector<ReplicationBarrier::Entry> retire();

 private:
  void ready();

  /// Event loop that runs all handlers.
  boost::asio::io_context& loop_;
  /// Id and endpoint of the node in the slot table.
  const SlotTable::Owner owner_;
  /// Connection options of the node.
  const ServerOptions server_;
  /// Callbacks of the router.
  const Callbacks callbacks_;
  /// Connection for commands.
  std::shared_ptr<Pipeline> pipeline_;
  /// Connection for notifications.
  Subscriber subscriber_;
  /// Connection for WAIT; created by the first run_replicated().
  std::unique_ptr<ReplicationBarrier> barrier_;
};

}  // namespace tenure::backends::redis
