#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backends/backend.hpp"
#include "backends/memory/store.hpp"

namespace tenure::backends {

/// Backend of one client on a MemoryStore, which several clients may share.
///
/// Calls complete on the caller's thread, before they return, except for an acquire that waits.
/// Thread safe, because the store is.
class MemoryBackend : public Backend {
 public:
  explicit MemoryBackend(std::shared_ptr<MemoryStore> store) : store_(std::move(store)) {}
  MemoryBackend(const MemoryBackend&) = delete;
  MemoryBackend& operator=(const MemoryBackend&) = delete;
  /// Ends this client's leases in the store and waits for the callback that is in progress.
  ~MemoryBackend() override;

  [[nodiscard]] Capabilities capabilities() const noexcept override;
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

 private:
  /// Store with the locks; destroyed with its last backend.
  std::shared_ptr<MemoryStore> store_;
  std::optional<MemoryStore::MemberId> member_;  ///< From start() on.
};

}  // namespace tenure::backends
