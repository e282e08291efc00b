// expect: nodiscard|ignoring return
// The guard would be destroyed at once and release the lock.
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
