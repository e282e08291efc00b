#include "server/requests/rollback_gate.hpp"

namespace tenure::server {

RollbackGate::Closed RollbackGate::close(core::LeaseId lease) {
  ++leases_[lease.get()].closed;
  return {*this, lease};
}

void RollbackGate::pass(core::LeaseId lease, Task task) {
  if (const auto it = leases_.find(lease.get()); it != leases_.end()) {
    it->second.delayed.push_back(std::move(task));
    return;
  }
  task();
}

void RollbackGate::open(core::LeaseId lease) {
  const auto it = leases_.find(lease.get());
  if (--it->second.closed > 0) {
    return;
  }
  // Removed before the calls: a task may close the gate again.
  auto delayed = std::move(it->second.delayed);
  leases_.erase(it);
  for (auto& task : delayed) {
    task();
  }
}

}  // namespace tenure::server
