// expect: deleted
// 004.077: only types with to_string() can be parsed.
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
