// expect: nodiscard|ignoring return value
// An ignored result hides that the lock was not acquired.
#include <tenure/tenure.hpp>

using namespace tenure;

#ifdef TENURE_CONTROL
bool lock(const LockManager& locks) {
  return locks.try_acquire(TxnId{1}, ResourceId{2}, LockMode::shared).has_value();
}
#else
void lock(const LockManager& locks) {
  locks.try_acquire(TxnId{1}, ResourceId{2}, LockMode::shared);
}
#endif
