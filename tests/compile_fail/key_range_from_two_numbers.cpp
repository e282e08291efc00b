// expect: private within this context|is private|private constructor
// 004.064: two numbers may form an empty range, so of() returns an optional.
#include <tenure/tenure.hpp>

using namespace tenure;

#ifdef TENURE_CONTROL
KeyRange range() {
  return KeyRange::of(4, 5).value();
}
#else
KeyRange range() {
  return KeyRange{5, 4};
}
#endif
