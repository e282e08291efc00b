// expect: deleted
// 004.077: what cannot be written cannot be read.
#include <tenure/tenure.hpp>

using namespace tenure;

#ifdef TENURE_CONTROL
Result<LockMode> mode() {
  return parse<LockMode>("X");
}
#else
Result<int> mode() {
  return parse<int>("5");
}
#endif
