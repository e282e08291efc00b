#include "backends/memory/backend.hpp"

namespace tenure::backends {

MemoryBackend::~MemoryBackend() {
  if (member_) {
    store_->leave(*member_);
  }
}

Capabilities MemoryBackend::capabilities() const noexcept {
  // The store ends with the process, so there is no durability and no failover.
  return {Capability::fencing,       Capability::fifo,    Capability::shared,
          Capability::modes,         Capability::ranges,  Capability::semaphore,
          Capability::several_names, Capability::upgrade, Capability::downgrade,
          Capability::new_ttl,       Capability::reentry, Capability::one_lease,
          Capability::deadlocks,     Capability::watches};
}

void MemoryBackend::start(Listener& listener) {
  // The store is in this process, so the connection exists at once and is never lost.
  member_ = store_->join(listener);
  listener.connection_changed(true, "in this process");
}

void MemoryBackend::grant_lease(LeaseRequest request, Done<void> done) {
  store_->grant_lease(*member_, request, std::move(done));
}

void MemoryBackend::renew_leases(std::vector<LeaseId> leases, Done<Renewed> done) {
  store_->renew_leases(leases, std::move(done));
}

void MemoryBackend::set_ttl(TtlRequest request, Done<void> done) {
  store_->set_ttl(request, std::move(done));
}

void MemoryBackend::revoke_lease(LeaseId lease, Done<void> done) {
  store_->revoke_lease(lease, std::move(done));
}

void MemoryBackend::acquire(AcquireRequest request, Done<Granted> done) {
  store_->acquire(request, std::move(done));
}

void MemoryBackend::abandon(LeaseId lease, RequestId request) {
  store_->abandon(lease, request);
}

void MemoryBackend::release(ReleaseRequest request, Done<void> done) {
  store_->release(request, std::move(done));
}

void MemoryBackend::downgrade(DowngradeRequest request, Done<void> done) {
  store_->downgrade(request, std::move(done));
}

WatchId MemoryBackend::watch(WatchRequest request, Sink sink) {
  return store_->watch(*member_, std::move(request), std::move(sink));
}

void MemoryBackend::unwatch(WatchId watch) {
  store_->unwatch(watch);
}

void MemoryBackend::holders(std::string name, Done<std::vector<Holder>> done) {
  done(store_->holders(name));
}

}  // namespace tenure::backends
