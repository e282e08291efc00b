#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/steady_timer.hpp>

#include "backends/backend.hpp"
#include "backends/locks_backend.hpp"
#include "backends/net/loop_backend.hpp"
#include "backends/redis/locks.hpp"
#include "backends/redis/router.hpp"
#include "backends/redis/url.hpp"

namespace tenure::backends::redis {

/// Backend for Redis: one server, the primary that Sentinels name, or a cluster. Uses two
/// connections to each server, one for commands and one for notifications, whatever the number of
/// waiters, and a third one if min_replicas is used.
///
/// Thread safe: every operation is posted to the event loop, which owns all parts below.
class RedisBackend final : public LocksBackend<Locks, LoopBackend> {
 public:
  /// Connects; returns when all connections are ready, or with the reason of the failure. Takes not
  /// much longer than `timeout`.
  [[nodiscard]] static Result<std::unique_ptr<RedisBackend>> open(
      const Deployment& deployment, std::chrono::milliseconds timeout);
  explicit RedisBackend(const Deployment& deployment);
  RedisBackend(const RedisBackend&) = delete;
  RedisBackend& operator=(const RedisBackend&) = delete;
  ~RedisBackend() override;

  /// Problems of the servers' configuration that do not prevent their use. REQUIRES: open() has
  /// returned.
  [[nodiscard]] std::vector<std::string> warnings();

  [[nodiscard]] Capabilities capabilities() const noexcept override;
  void start(Listener& listener) override;

 private:
  [[nodiscard]] Locks& locks() noexcept override { return locks_; }
  void send_all() override { router_->flush(); }
  /// Router for the topology of the deployment.
  [[nodiscard]] std::unique_ptr<CommandRouter> make_router(const Deployment& deployment,
                                                           const CommandEncoder& encoder);
  /// Some servers are connected or reconnected.
  void ready(const KeyFilter& affected);
  /// A connection was lost, or could not be made.
  void disconnected(const Error& why);
  /// Wakes the destructor when all commands have been answered.
  void signal_if_drained();

  /// Longest time that the destructor waits for replies.
  const std::chrono::milliseconds drain_timeout_;
  /// Receiver of events; null before start() and while ending.
  Listener* listener_ = nullptr;
  /// State of the connection as last reported to the listener.
  bool is_reported_connected_ = false;
  /// Result of the first connection attempt.
  std::optional<Result<void>> open_result_;
  /// Signalled with the first result.
  sys::WaitSlot opened_;
  /// Signalled when the destructor may continue.
  sys::WaitSlot drained_;
  /// The destructor has begun.
  bool is_ending_ = false;
  /// Collected warnings, without duplicates.
  std::vector<std::string> warnings_;

  // Used on the loop's thread only:
  //
  /// Timer of drain_timeout_.
  boost::asio::steady_timer drain_timer_;
  /// Encoder of the commands.
  const CommandEncoder encoder_;
  /// Connections to the servers.
  std::unique_ptr<CommandRouter> router_;
  /// Leases, holds and pending acquires.
  Locks locks_;
};

}  // namespace tenure::backends::redis
