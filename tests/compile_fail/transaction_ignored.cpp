// expect: nodiscard|ignoring return
// A temporary transaction ends, and unlocks, in the same statement.
#include <cstddef>

#include <tenure/tenure.hpp>

using namespace tenure;

#ifdef TENURE_CONTROL
std::size_t work(const LockManager& locks) {
  const Transaction txn = locks.begin();
  return txn.lock_count();
}
#else
void work(const LockManager& locks) {
  locks.begin();
}
#endif
