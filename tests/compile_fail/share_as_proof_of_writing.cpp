// expect: invalid initialization|no matching|could not convert|cannot bind|no known conversion
// A share does not allow to write: a function that asks for a Guard must not get it.
#include <tenure/tenure.hpp>

using namespace tenure;

void rebuild_index(const Guard& proof);

#ifdef TENURE_CONTROL
void work(const Guard& guard) {
  rebuild_index(guard);
}
#else
void work(const SharedGuard& guard) {
  rebuild_index(guard);
}
#endif
