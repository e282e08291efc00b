#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backends/backend.hpp"
#include "backends/cluster/courier.hpp"
#include "backends/net/pump.hpp"
#include "backends/rpc/dialer.hpp"
#include "sys/mutex.hpp"

namespace tenure::backends::cluster {

/// The lock service `tenured`, over one connection, whatever the number of waits. Threads that wait
/// read their answers themselves, see Pump. What is asked for while one is at it leaves together.
class ClusterBackend final : public Backend {
 public:
  /// Returns when a server answers; `unavailable` says why none did within `patience`.
  [[nodiscard]] static Result<std::unique_ptr<ClusterBackend>> open(
      Servers servers, std::string client, std::chrono::milliseconds patience);
  ~ClusterBackend() override;

  [[nodiscard]] Promises promises() const noexcept override;
  [[nodiscard]] Bounds bounds() const noexcept override;
  void start(Listener& listener) override;

  void grant_lease(LeaseRequest request, Done<void> done) override;
  void renew_leases(std::vector<LeaseId> leases, Done<Renewed> done) override;
  void set_ttl(TtlRequest request, Done<void> done) override;
  void revoke_lease(LeaseId lease, Done<void> done) override;
  void acquire(AcquireRequest request, Done<Granted> done) override;
  void abandon(LeaseId lease, RequestId request) override;
  void release(ReleaseRequest request, Done<void> done) override;
  void sleep(Nap& nap, std::uint32_t calls_seen, Nap::Deadline deadline, SleepFor what) override {
    pump_.sleep(nap, calls_seen, deadline, what);
  }
  void wake(Nap& nap) override { pump_.wake(nap); }
  void downgrade(DowngradeRequest request, Done<void> done) override;
  WatchId watch(WatchRequest request, Sink sink) override;
  void unwatch(WatchId watch) override;
  void holders(std::string name, Done<std::vector<Holder>> done) override;

  ClusterBackend(Servers servers, std::string client);

 private:
  /// Something that happens once, and that a thread waits for.
  struct Moment {
    Nap nap;
    std::atomic<bool> is_here = false;
  };

  void post(ErrandPointer errand);
  [[nodiscard]] std::function<void()> arrival_of(const std::shared_ptr<Moment>& moment);
  void wait_for(Moment& moment, Nap::Deadline deadline);

  std::chrono::milliseconds farewell_;
  std::atomic<std::uint64_t> last_watch_ = 0;

  sys::Mutex mutex_;
  /// The loop was told of the first.
  std::vector<ErrandPointer> posted_ TENURE_GUARDED_BY(mutex_);

  Pump pump_;
  std::shared_ptr<Courier> courier_;  ///< On its loop.
};

}  // namespace tenure::backends::cluster
