// expect: private within this context|is private|private constructor
// 004-B20: two strings may be an empty range, and that is asked first.
#include <tenure/tenure.hpp>

using namespace tenure;

#ifdef TENURE_CONTROL
BytesRange range() {
  return BytesRange::of("a", "b").value();
}
#else
BytesRange range() {
  return BytesRange{"b", "a"};
}
#endif
