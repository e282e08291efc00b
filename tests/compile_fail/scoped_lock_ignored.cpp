// expect: nodiscard|ignoring return
// A temporary handle unlocks in the same statement.
#include <tenure/tenure.hpp>

using namespace tenure;

#ifdef TENURE_CONTROL
bool work(const Transaction& txn) {
  const auto lock = txn.lock_scoped(ResourceId{1}, LockMode::shared);
  return lock.has_value();
}
#else
void work(const Transaction& txn) {
  txn.lock_scoped(ResourceId{1}, LockMode::shared);
}
#endif
