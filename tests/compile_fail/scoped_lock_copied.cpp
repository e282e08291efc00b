// expect: deleted
// Two owners of one acquisition would release it twice.
#include <utility>

#include <tenure/tenure.hpp>

using namespace tenure;

#ifdef TENURE_CONTROL
ScopedLock pass_on(ScopedLock& lock) {
  return std::move(lock);
}
#else
ScopedLock pass_on(ScopedLock& lock) {
  return lock;
}
#endif
