// expect: no match for .operator==|invalid operands
// 004.070: comparing a transaction with a resource is meaningless.
#include <tenure/tenure.hpp>

using namespace tenure;

#ifdef TENURE_CONTROL
bool same(TxnId one, TxnId other) {
  return one == other;
}
#else
bool same(TxnId one, ResourceId other) {
  return one == other;
}
#endif
