// expect: deleted
// Two owners of one transaction would release its locks twice.
#include <utility>

#include <tenure/tenure.hpp>

using namespace tenure;

#ifdef TENURE_CONTROL
Transaction pass_on(Transaction& txn) {
  return std::move(txn);
}
#else
Transaction pass_on(Transaction& txn) {
  return txn;
}
#endif
