// expect: could not convert|cannot convert|no viable conversion|no known conversion|no matching
// 004.064: a range that may be empty must be tested before it is locked.
#include <tenure/tenure.hpp>

using namespace tenure;

#ifdef TENURE_CONTROL
Result<void> lock(const LockManager& locks) {
  return locks.try_acquire_range(TxnId{1}, ResourceId{2}, KeyRange::of(4, 5).value(),
                                 LockMode::shared);
}
#else
Result<void> lock(const LockManager& locks) {
  return locks.try_acquire_range(TxnId{1}, ResourceId{2}, KeyRange::of(5, 4), LockMode::shared);
}
#endif
