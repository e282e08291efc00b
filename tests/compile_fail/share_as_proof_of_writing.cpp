// expect: invalid initialization|no matching|could not convert|cannot bind|no known conversion
// A shared hold does not permit writes: a function that requires a Guard must not accept it.
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
