#pragma once

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "client/lease_record.hpp"
#include "sys/latch.hpp"

namespace tenure::detail {

/// Pool of idle leases. A hold without an explicit lease has its own, because the service treats a
/// lease as one owner: threads that shared one would appear as self-deadlocks. Granting a lease per
/// acquire would double the number of requests, so idle leases are reused until the renewer retires
/// them. Thread safe.
class LeasePool {
 public:
  using Record = std::shared_ptr<LeaseRecord>;

  /// An idle lease with these terms, or null. It may have ended in the pool.
  [[nodiscard]] Record take(std::chrono::milliseconds ttl, int renewals_per_ttl) {
    const sys::LatchGuard lock(latch_);
    // The most recently released lease first. A client that needs n leases at a time uses the same
    // n, and the others become idle and are retired.
    for (auto it = free_.rbegin(); it != free_.rend(); ++it) {
      if ((*it)->term().ttl != ttl || (*it)->renewals_per_ttl() != renewals_per_ttl) {
        continue;
      }
      auto lease = std::move(*it);
      free_.erase(std::next(it).base());
      lease->mark_used();
      return lease;
    }
    return nullptr;
  }

  /// Makes the lease available. REQUIRES: the service counts no hold and no wait under it.
  void release(Record lease) {
    if (lease->has_ended()) {
      return;
    }
    const sys::LatchGuard lock(latch_);
    free_.push_back(std::move(lease));
  }

  /// Removes this lease. False if it is in use.
  [[nodiscard]] bool remove(const Record& lease) {
    const sys::LatchGuard lock(latch_);
    return std::erase(free_, lease) > 0;
  }

  /// Empties the pool, for the end of the session.
  [[nodiscard]] std::vector<Record> take_all() {
    const sys::LatchGuard lock(latch_);
    return std::exchange(free_, {});
  }

 private:
  sys::Latch latch_;
  std::vector<Record> free_
      TENURE_GUARDED_BY(latch_);  ///< Used as a stack, so that rarely used leases become idle.
};

}  // namespace tenure::detail
