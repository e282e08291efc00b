#pragma once

#include <cstdint>

namespace tenure::core {

/// Cost counter of one step: number of visited holds, waits, leases and items. Depends on the state
/// and the command alone, so all members count the same; wall time would not. Each visit takes at
/// most O(log n).
class Visits {
 public:
  void add(std::uint64_t count = 1) noexcept { total_ += count; }
  [[nodiscard]] std::uint64_t total() const noexcept { return total_; }

 private:
  std::uint64_t total_ = 0;
};

/// Upper bound for the visits of one part of a step.
class VisitBudget {
 public:
  VisitBudget(Visits& visits, std::uint64_t visits_max)
      : visits_(visits), start_(visits.total()), visits_max_(visits_max) {}

  void spend(std::uint64_t count = 1) noexcept { visits_.add(count); }
  [[nodiscard]] bool is_exceeded() const noexcept { return visits_.total() - start_ > visits_max_; }

 private:
  Visits& visits_;
  std::uint64_t start_;
  std::uint64_t visits_max_;
};

}  // namespace tenure::core
