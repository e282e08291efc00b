// expect: nodiscard|ignoring return
// An ignored result hides that the lock was lost before unlock().
#include <tenure/tenure.hpp>

using namespace tenure;

#ifdef TENURE_CONTROL
bool end(const Transaction& txn) {
  return txn.unlock(ResourceId{1}).has_value();
}
#else
void end(const Transaction& txn) {
  txn.unlock(ResourceId{1});
}
#endif
