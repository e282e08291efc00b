// expect: cannot convert|no viable conversion
// 004.070: the conversion to the number is explicit: get().
#include <cstdint>

#include <tenure/tenure.hpp>

using namespace tenure;

#ifdef TENURE_CONTROL
std::uint64_t number(TxnId txn) {
  return txn.get();
}
#else
std::uint64_t number(TxnId txn) {
  return txn;
}
#endif
