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

/// One server, or the one that SentinelResolver call the primary: a connection that asks and one
/// that listens, and a third where replicas are waited for.
class StandaloneRouter final : public CommandRouter {
 public:
  /// `sentinels`: null if the server is where its server says. `channel`: where we listen.
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
  void ready();
  void disconnected(const Error& why);
  void primary_changed(const Endpoint& endpoint);

  boost::asio::io_context& loop_;
  const ServerOptions server_;
  const Callbacks callbacks_;
  std::shared_ptr<SentinelResolver> sentinels_;
  std::shared_ptr<Pipeline> pipeline_;
  Subscriber subscriber_;
  std::unique_ptr<ReplicationBarrier> barrier_;  ///< From its first use.
  bool was_disconnected_ = false;
};

}  // namespace tenure::backends::redis
