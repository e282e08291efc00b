#pragma once

#include <memory>
#include <string>

#include <boost/asio/io_context.hpp>

#include "backends/redis/router.hpp"
#include "backends/redis/sentinel_resolver.hpp"
#include "backends/redis/server_connections.hpp"

namespace tenure::backends::redis {

/// Router for one server, or for the primary that Sentinels name. Follows a failover as soon as a
/// Sentinel announces it. Runs on the loop's thread.
class StandaloneRouter final : public CommandRouter {
 public:
  /// `sentinels`: null if the server has a fixed endpoint. `channel`: channel of the notifications.
  StandaloneRouter(boost::asio::io_context& loop, ServerOptions server,
                   std::shared_ptr<SentinelResolver> sentinels, const std::string& channel,
                   Callbacks callbacks);

  void start() override;
  [[nodiscard]] bool is_ready() const override { return connections_.is_ready(); }
  [[nodiscard]] bool reaches(std::string_view /*key*/) const override {
    return connections_.is_connected();
  }
  [[nodiscard]] bool is_idle() const override { return connections_.is_idle(); }
  void run(Command&& command) override { connections_.run(std::move(command)); }
  void flush() override { connections_.flush(); }
  void stop(const Error& why) override;

 private:
  /// The server is connected.
  void ready();
  /// A connection was lost, or could not be made.
  void disconnected(const Error& why);

  /// Callbacks of the owner.
  const Callbacks callbacks_;
  /// Resolver of the primary; null: the endpoint is fixed.
  std::shared_ptr<SentinelResolver> sentinels_;
  ServerConnections connections_;
  /// A connection was lost since the last time both were ready.
  bool was_disconnected_ = false;
};

}  // namespace tenure::backends::redis
