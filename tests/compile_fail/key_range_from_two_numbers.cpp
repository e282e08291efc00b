// expect: private within this context|is private|private constructor
// 004.064: two numbers may be an empty range, and that is asked first.
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
