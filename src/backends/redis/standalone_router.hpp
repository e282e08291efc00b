#pragma once

#include <memory>
#include <string>

#include <boost/asio/io_context.hpp>

#include "backends/redis/pipeline.hpp"
#include "backends/redis/replication_barrier.hpp"
#include "backends/redis/router.hpp"
#include "backends/redis/sentinel_resolver.hpp"
#include "backends/redis/subscriber.hpp"

namespace tenure::backends::redis {

/// Router for one server, or for the primary that Sentinels name: a pipeline for commands, a
/// subscriber for notifications and, once WAIT is needed, a replication barrier. Follows a failover
/// as soon as a Sentinel announces it. Runs on the loop's thread.
class StandaloneRouter final : public CommandRouter {
 public:
  /// `sentinels`: null if the server has a fixed endpoint. `channel`: channel of the notifications.
  StandaloneRouter(boost::asio::io_context& loop, ServerOptions server,
                   std::shared_ptr<SentinelResolver> sentinels, const std::string& channel,
                   Callbacks callbacks);

  void start() override;
  [[nodiscard]] bool is_ready() const override {
    return pipeline_->is_ready() && subscriber_.is_ready();
  }
  [[nodiscard]] bool reaches(std::string_view /*key*/) const override {
    return pipeline_->is_ready();
  }
  [[nodiscard]] bool is_idle() const override;
  void run(Command&& command) override { pipeline_->run(std::move(command)); }
  void run_replicated(Command command, std::uint32_t replicas) override;
  void flush() override { pipeline_->flush(); }
  void stop(const Error& why) override;

 private:
  /// A connection is up: reports ready when both are.
  void ready();
  /// A connection was lost, or could not be made.
  void disconnected(const Error& why);
  /// Moves all connections to the new primary.
  void primary_changed(const Endpoint& endpoint);

  /// Event loop that runs all handlers.
  boost::asio::io_context& loop_;
  /// Connection options of the server.
  const ServerOptions server_;
  /// Callbacks of the owner.
  const Callbacks callbacks_;
  /// Resolver of the primary; null: the endpoint is fixed.
  std::shared_ptr<SentinelResolver> sentinels_;
  /// Connection for commands.
  std::shared_ptr<Pipeline> pipeline_;
  /// Connection for notifications.
  Subscriber subscriber_;
  /// Connection for WAIT; created by the first run_replicated().
  std::unique_ptr<ReplicationBarrier> barrier_;
  /// A connection was lost since the last time both were ready.
  bool was_disconnected_ = false;
};

}  // namespace tenure::backends::redis
