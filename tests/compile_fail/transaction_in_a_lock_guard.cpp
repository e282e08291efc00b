// expect: no matching function|too few arguments|has no member|no match
// A transaction acquires many locks in many modes: it is not a mutex.
#include <cstddef>
#include <mutex>

#include <tenure/tenure.hpp>

using namespace tenure;

#ifdef TENURE_CONTROL
std::size_t work(const LockManager& locks) {
  const Transaction txn = locks.begin();
  return txn.lock_count();
}
#else
void work(Transaction& txn) {
  const std::lock_guard<Transaction> lock(txn);
}
#endif
