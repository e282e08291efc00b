#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backends/backend.hpp"
#include "backends/net/loop_backend.hpp"
#include "backends/rpc/dialer.hpp"
#include "backends/tenured/courier.hpp"

namespace tenure::backends::tenured {

/// The lock service `tenured`, over one connection, whatever the number of waits.
class ClusterBackend final : public LoopBackend {
 public:
  /// Returns when a server answers; `unavailable` says why none did within `timeout`.
  [[nodiscard]] static Result<std::unique_ptr<ClusterBackend>> open(
      Servers servers, std::string client, std::chrono::milliseconds timeout);
  ~ClusterBackend() override;

  [[nodiscard]] Capabilities capabilities() const noexcept override;
  [[nodiscard]] Limits limits() const noexcept override;
  void start(Listener& listener) override;

  void grant_lease(LeaseRequest request, Done<void> done) override;
  void renew_leases(std::vector<LeaseId> leases, Done<Renewed> done) override;
  void set_ttl(TtlRequest request, Done<void> done) override;
  void revoke_lease(LeaseId lease, Done<void> done) override;
  void acquire(AcquireRequest request, Done<Granted> done) override;
  void abandon(LeaseId lease, RequestId request) override;
  void release(ReleaseRequest request, Done<void> done) override;
  void downgrade(DowngradeRequest request, Done<void> done) override;
  WatchId watch(WatchRequest request, Sink sink) override;
  void unwatch(WatchId watch) override;
  void holders(std::string name, Done<std::vector<Holder>> done) override;

  ClusterBackend(Servers servers, std::string client);

 private:
  /// Adds an operation to the batch that is sent next.
  void send(ErrandPointer errand);
  void send_all() override;
  /// Runs `job` on the loop, after the operations before it have been passed to the courier.
  template <class Job>
  void post_behind(Job job);
  [[nodiscard]] std::function<void()> signal_of(const std::shared_ptr<sys::WaitSlot>& slot);

  std::chrono::milliseconds farewell_;
  std::atomic<std::uint64_t> last_watch_ = 0;

  // On the loop:
  std::vector<ErrandPointer> batch_;  ///< Operations to send.
  std::shared_ptr<Courier> courier_;
};

}  // namespace tenure::backends::tenured
