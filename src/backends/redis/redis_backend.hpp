#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/steady_timer.hpp>

#include "backends/backend.hpp"
#include "backends/net/pump.hpp"
#include "backends/redis/address.hpp"
#include "backends/redis/locks.hpp"
#include "backends/redis/pipeline.hpp"
#include "backends/redis/waker.hpp"
#include "sys/mutex.hpp"

namespace tenure::backends::redis {

/// Locks on one Redis server, over two connections, whatever the number of waits: one that asks and
/// one that listens. Threads that wait read their answers themselves, see Pump.
class RedisBackend final : public Backend {
 public:
  /// Returns when the server answers; else says why it did not within `patience`.
  [[nodiscard]] static Result<std::unique_ptr<RedisBackend>> open(
      const Address& address, std::chrono::milliseconds patience);
  explicit RedisBackend(const Address& address);
  ~RedisBackend() override;

  /// What people should know of this server, though it serves. After open().
  [[nodiscard]] std::vector<std::string> doubts();

  [[nodiscard]] Promises promises() const noexcept override;
  [[nodiscard]] Bounds bounds() const noexcept override;
  void start(Listener& listener) override;

  void grant_lease(LeaseRequest request, Done<void> done) override;
  void renew_leases(std::vector<LeaseId> leases, Done<Renewed> done) override;
  void revoke_lease(LeaseId lease, Done<void> done) override;
  void acquire(AcquireRequest request, Done<Granted> done) override;
  void abandon(LeaseId lease, RequestId request) override;
  void release(ReleaseRequest request, Done<void> done) override;
  void downgrade(DowngradeRequest request, Done<void> done) override;
  WatchId watch(WatchRequest request, Sink sink) override;
  void unwatch(WatchId /*watch*/) override {}
  void holders(std::string name, Done<std::vector<Holder>> done) override;
  void sleep(Nap& nap, std::uint32_t calls_seen, Nap::Deadline deadline, SleepFor what) override {
    pump_.sleep(nap, calls_seen, deadline, what);
  }
  void wake(Nap& nap) override { pump_.wake(nap); }

 private:
  using Job = std::move_only_function<void()>;
  /// Something that happens once, and that a thread waits for.
  struct Moment {
    Nap nap;
    std::atomic<bool> is_here = false;
  };

  void post(Job job);
  void arrived(Moment& moment);
  void wait_for(Moment& moment, Nap::Deadline deadline);
  void line_ready();
  void line_lost(const Error& why);
  void end_if_idle();

  const std::chrono::milliseconds farewell_;
  Listener* listener_ = nullptr;
  bool is_told_connected_ = false;
  std::optional<Result<void>> first_;  ///< What became of the first attempt to connect.
  Moment opened_;
  Moment ended_;
  bool is_ending_ = false;
  std::vector<std::string> doubts_;

  sys::Mutex mutex_;
  std::vector<Job> posted_ TENURE_GUARDED_BY(mutex_);  ///< The loop was told of the first.

  Pump pump_;
  boost::asio::steady_timer patience_;
  // On its loop:
  std::shared_ptr<Pipeline> pipeline_;
  Locks locks_;
  Waker waker_;
};

}  // namespace tenure::backends::redis
