// expect: cannot convert|could not convert|no known conversion
// 002.053: only a grant produces a fencing token.
#include <tenure/fence.hpp>

using namespace tenure;

#ifdef TENURE_CONTROL
bool ask(Fence& fence) {
  return fence.admit("a", FencingToken{1}).has_value();
}
#else
bool ask(Fence& fence) {
  return fence.admit("a", TxnId{1}).has_value();
}
#endif
