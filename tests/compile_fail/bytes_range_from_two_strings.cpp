// expect: private within this context|is private|private constructor
// 004-B20: two strings may form an empty range, so of() returns an optional.
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
