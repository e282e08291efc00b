#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/steady_timer.hpp>

#include "backends/backend.hpp"
#include "backends/net/loop_backend.hpp"
#include "backends/redis/locks.hpp"
#include "backends/redis/router.hpp"
#include "backends/redis/url.hpp"

namespace tenure::backends::redis {

/// Locks on Redis: one server, the primary that SentinelResolver name, or a cluster. Two
/// connections to each server that is used, whatever the number of waits: one that asks and one
/// that listens.
class RedisBackend final : public LocksOnLoop<Locks> {
 public:
  /// Returns when the server answers; else says why it did not within `timeout`.
  [[nodiscard]] static Result<std::unique_ptr<RedisBackend>> open(
      const Deployment& deployment, std::chrono::milliseconds timeout);
  explicit RedisBackend(const Deployment& deployment);
  RedisBackend(const RedisBackend&) = delete;
  RedisBackend& operator=(const RedisBackend&) = delete;
  ~RedisBackend() override;

  /// What people should know of this server, though it serves. After open().
  [[nodiscard]] std::vector<std::string> warnings();

  [[nodiscard]] Capabilities capabilities() const noexcept override;
  [[nodiscard]] Limits limits() const noexcept override;
  void start(Listener& listener) override;

  void downgrade(DowngradeRequest request, Done<void> done) override;

 private:
  [[nodiscard]] Locks& locks() noexcept override { return locks_; }
  void send_all() override { router_->flush(); }
  [[nodiscard]] std::unique_ptr<CommandRouter> make_router(const Deployment& deployment,
                                                           const CommandEncoder& commands);
  void ready(const KeyFilter& affected);
  void disconnected(const Error& why);
  void signal_if_drained();

  const std::chrono::milliseconds drain_timeout_;
  Listener* listener_ = nullptr;
  bool is_reported_connected_ = false;
  std::optional<Result<void>> open_result_;  ///< What became of the first attempt to connect.
  sys::WaitSlot opened_;
  sys::WaitSlot drained_;
  bool is_ending_ = false;
  std::vector<std::string> warnings_;

  // On the loop:
  boost::asio::steady_timer drain_timer_;
  const CommandEncoder encoder_;
  std::unique_ptr<CommandRouter> router_;
  Locks locks_;
};

}  // namespace tenure::backends::redis
