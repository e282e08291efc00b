// expect: nodiscard|ignoring return
// 002.054: a writer that ignores the result writes with a stale token.
#include <tenure/fence.hpp>

using namespace tenure;

#ifdef TENURE_CONTROL
bool ask(Fence& fence) {
  return fence.admit("a", FencingToken{1}).has_value();
}
#else
void ask(Fence& fence) {
  fence.admit("a", FencingToken{1});
}
#endif
