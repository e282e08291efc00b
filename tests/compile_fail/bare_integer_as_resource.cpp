// expect: cannot convert|could not convert|no matching|no known conversion
// 004.070: a bare integer may be a resource or a space.
#include <cstddef>

#include <tenure/tenure.hpp>

using namespace tenure;

#ifdef TENURE_CONTROL
std::size_t holders(const LockManager& locks) {
  return locks.holder_count(ResourceId{1});
}
#else
std::size_t holders(const LockManager& locks) {
  return locks.holder_count(1);
}
#endif
