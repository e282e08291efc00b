#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/steady_timer.hpp>

#include "backends/backend.hpp"
#include "backends/net/loop_backend.hpp"
#include "backends/redis/carrier.hpp"
#include "backends/redis/deployment.hpp"
#include "backends/redis/locks.hpp"

namespace tenure::backends::redis {

/// Locks on Redis: one server, the primary that Sentinels name, or a cluster. Two connections to
/// each server that is used, whatever the number of waits: one that asks and one that listens.
class RedisBackend final : public LocksOnLoop<Locks> {
 public:
  /// Returns when the server answers; else says why it did not within `patience`.
  [[nodiscard]] static Result<std::unique_ptr<RedisBackend>> open(
      const Deployment& deployment, std::chrono::milliseconds patience);
  explicit RedisBackend(const Deployment& deployment);
  RedisBackend(const RedisBackend&) = delete;
  RedisBackend& operator=(const RedisBackend&) = delete;
  ~RedisBackend() override;

  /// What people should know of this server, though it serves. After open().
  [[nodiscard]] std::vector<std::string> doubts();

  [[nodiscard]] Promises promises() const noexcept override;
  [[nodiscard]] Bounds bounds() const noexcept override;
  void start(Listener& listener) override;

  void downgrade(DowngradeRequest request, Done<void> done) override;

 private:
  [[nodiscard]] Locks& locks() noexcept override { return locks_; }
  void send_all() override { carrier_->flush(); }
  [[nodiscard]] std::unique_ptr<Carrier> make_carrier(const Deployment& deployment,
                                                      const Commands& commands);
  void ready(const Concerns& concerns);
  void lost(const Error& why);
  void end_if_idle();

  const std::chrono::milliseconds farewell_;
  Listener* listener_ = nullptr;
  bool is_told_connected_ = false;
  std::optional<Result<void>> first_;  ///< What became of the first attempt to connect.
  sys::WaitSlot opened_;
  sys::WaitSlot ended_;
  bool is_ending_ = false;
  std::vector<std::string> doubts_;

  // On the loop:
  boost::asio::steady_timer patience_;
  const Commands commands_;
  std::unique_ptr<Carrier> carrier_;
  Locks locks_;
};

}  // namespace tenure::backends::redis
