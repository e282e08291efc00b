// expect: deleted
// Two guards of one hold would release it twice.
#include <utility>

#include <tenure/tenure.hpp>

using namespace tenure;

#ifdef TENURE_CONTROL
Guard pass_on(Guard& guard) {
  return std::move(guard);
}
#else
Guard pass_on(Guard& guard) {
  return guard;
}
#endif
