#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>

#include "backends/backend.hpp"
#include "backends/cluster/courier.hpp"
#include "backends/cluster/dialer.hpp"
#include "sys/mutex.hpp"

namespace tenure::backends::cluster {

/// The lock service `tenured`, over one connection with one thread, whatever the number of waits.
/// What is asked for while the thread is busy leaves together.
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
  void post(Errand errand);

  std::chrono::milliseconds farewell_;
  boost::asio::io_context loop_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
  std::shared_ptr<Courier> courier_;
  std::atomic<std::uint64_t> last_watch_ = 0;

  sys::Mutex mutex_;
  std::vector<Errand> posted_ TENURE_GUARDED_BY(mutex_);  ///< The loop was told of the first.

  std::thread thread_;
};

}  // namespace tenure::backends::cluster
