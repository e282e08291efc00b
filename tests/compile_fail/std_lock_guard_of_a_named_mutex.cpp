// expect: no matching|no member|has no|cannot convert|invalid|conversion|discard
// lock() returns the guard; std::lock_guard would discard it and hold nothing.
#include <mutex>

#include <tenure/tenure.hpp>

using namespace tenure;

#ifdef TENURE_CONTROL
void work(StdLockable& mutex) {
  const std::lock_guard lock(mutex);
}
#else
void work(Mutex& mutex) {
  const std::lock_guard lock(mutex);
}
#endif
