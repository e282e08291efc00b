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
#include "backends/rpc/channel_connector.hpp"
#include "backends/tenured/session_client.hpp"

namespace tenure::backends::tenured {

/// Backend for tenure://: one connection to the leader carries all requests, whatever the number of
/// waits. Requests of all threads are batched on the event loop.
///
/// Thread safe, as Backend requires.
class TenuredBackend final : public LoopBackend {
 public:
  /// Connects. Returns when a server responds; `unavailable` gives the reason why none did within
  /// `timeout`.
  [[nodiscard]] static Result<std::unique_ptr<TenuredBackend>> open(
      Servers servers, std::string client, std::chrono::milliseconds timeout);
  TenuredBackend(const TenuredBackend&) = delete;
  TenuredBackend& operator=(const TenuredBackend&) = delete;
  ~TenuredBackend() override;

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

  TenuredBackend(Servers servers, std::string client);

 private:
  /// Queues an operation for the next batch.
  void send(PendingCallPtr call);
  void send_all() override;
  /// Runs `job` on the loop, after the queued operations were passed to the session client.
  template <class Job>
  void post_behind(Job job);
  /// Callback that wakes the thread that waits on `slot`. Keeps the slot alive.
  [[nodiscard]] std::function<void()> signal_of(const std::shared_ptr<sys::WaitSlot>& slot);

  /// Time for releases and revocations in the destructor, and for the start of a watch.
  std::chrono::milliseconds shutdown_timeout_;
  /// Id of the newest watch; taken on the threads of the callers.
  std::atomic<std::uint64_t> last_watch_ = 0;

  // Used on the event loop only:
  /// Operations of the next batch.
  std::vector<PendingCallPtr> batch_;
  /// Connection to the servers, with all pending calls.
  std::shared_ptr<SessionClient> session_client_;
};

}  // namespace tenure::backends::tenured
