// expect: cannot convert|could not convert|no known conversion
// 004.070: a transaction id is not a resource id.
#include <tenure/tenure.hpp>

using namespace tenure;

#ifdef TENURE_CONTROL
Result<void> lock(const LockManager& locks) {
  return locks.try_acquire(TxnId{1}, ResourceId{2}, LockMode::shared);
}
#else
Result<void> lock(const LockManager& locks) {
  return locks.try_acquire(ResourceId{2}, TxnId{1}, LockMode::shared);
}
#endif
