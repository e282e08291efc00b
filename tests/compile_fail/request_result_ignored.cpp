// expect: nodiscard|ignoring return
// 004.044: the result shows whether the lock is granted, queued or a deadlock.
#include <tenure/tenure.hpp>

using namespace tenure;

#ifdef TENURE_CONTROL
bool lock(const LockManager& locks) {
  return locks.request(TxnId{1}, ResourceId{2}, LockMode::shared).is_granted();
}
#else
void lock(const LockManager& locks) {
  locks.request(TxnId{1}, ResourceId{2}, LockMode::shared);
}
#endif
