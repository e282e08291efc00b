#pragma once

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "client/lease_record.hpp"
#include "sys/latch.hpp"

namespace tenure::detail {

/// Leases without a hold, to be used again. A hold that is not given a lease has one to itself: the
/// service takes a lease for one owner, and two threads that shared one would seem to wait for each
/// other where they do not. Granting a lease for each would double the work; so those that come
/// free wait here until somebody takes them or the keeper lets them go. Thread safe.
class LeasePool {
 public:
  using Record = std::shared_ptr<LeaseRecord>;

  /// One with these terms, whatever it began with; or nothing. It may have ended meanwhile.
  [[nodiscard]] Record take(std::chrono::milliseconds ttl, int renewals_per_ttl) {
    const sys::LatchGuard lock(latch_);
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

  void give_back(Record lease) {
    if (lease->has_ended()) {
      return;
    }
    const sys::LatchGuard lock(latch_);
    free_.push_back(std::move(lease));
  }

  /// Takes this one out. False if somebody has it.
  [[nodiscard]] bool remove(const Record& lease) {
    const sys::LatchGuard lock(latch_);
    return std::erase(free_, lease) > 0;
  }

  [[nodiscard]] std::vector<Record> take_all() {
    const sys::LatchGuard lock(latch_);
    return std::exchange(free_, {});
  }

 private:
  sys::Latch latch_;
  std::vector<Record> free_ TENURE_GUARDED_BY(latch_);  ///< Used last, found first.
};

}  // namespace tenure::detail
