#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include <absl/container/flat_hash_map.h>

#include "core/ids.hpp"

namespace tenure::server {

/// Delays the acquire requests of a lease while an abandoned one of the same lease is rolled back.
/// Without it, a retry could reenter an upgraded hold just before the rollback downgrades it, and
/// its client would rely on a mode that the hold does not have. Not thread safe; belongs to the
/// store's thread.
class RollbackGate {
 public:
  using Task = std::move_only_function<void()>;

  /// Keeps the gate of one lease closed, until it is destroyed. REQUIRES: the gate outlives it.
  class Closed {
   public:
    Closed(RollbackGate& gate, core::LeaseId lease) : gate_(&gate), lease_(lease) {}
    Closed(Closed&& other) noexcept
        : gate_(std::exchange(other.gate_, nullptr)), lease_(other.lease_) {}
    Closed(const Closed&) = delete;
    Closed& operator=(const Closed&) = delete;
    Closed& operator=(Closed&&) = delete;
    ~Closed() {
      if (gate_ != nullptr) {
        gate_->open(lease_);
      }
    }

   private:
    RollbackGate* gate_;
    core::LeaseId lease_;
  };

  [[nodiscard]] Closed close(core::LeaseId lease);
  /// Runs the task now or, in the order of the calls, when the gate of the lease opens.
  void pass(core::LeaseId lease, Task task);

 private:
  struct State {
    std::size_t closed = 0;  ///< Number of Closed objects.
    std::vector<Task> delayed{};
  };

  void open(core::LeaseId lease);

  /// Leases whose gate is closed.
  absl::flat_hash_map<std::uint64_t, State> leases_;
};

}  // namespace tenure::server
