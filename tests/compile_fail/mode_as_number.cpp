// expect: cannot convert|no viable conversion|invalid conversion
// 004.056: a mode is an enumerator, not a number.
#include <tenure/tenure.hpp>

using namespace tenure;

#ifdef TENURE_CONTROL
LockMode mode() {
  return LockMode::exclusive;
}
#else
LockMode mode() {
  return 5;
}
#endif
