// expect: nodiscard|ignoring return
// The guard would go at once, and the lock with it.
#include <tenure/tenure.hpp>

using namespace tenure;

#ifdef TENURE_CONTROL
bool work(const Mutex& mutex) {
  return mutex.lock().has_value();
}
#else
void work(const Mutex& mutex) {
  mutex.lock();
}
#endif
