// expect: cannot convert|could not convert|no matching|no known conversion
// 004.026: a range without a space would conflict with those of all spaces.
#include <cstddef>

#include <tenure/tenure.hpp>

using namespace tenure;

#ifdef TENURE_CONTROL
std::size_t holders(const LockManager& locks) {
  return locks.holder_count(KeysOf{.space = ResourceId{1}, .range = KeyRange::point(5)});
}
#else
std::size_t holders(const LockManager& locks) {
  return locks.holder_count(KeyRange::point(5));
}
#endif
