// expect: cannot convert|could not convert|no known conversion|chosen constructor is explicit
// 004.070: a bare integer is not an id.
#include <cstddef>

#include <tenure/tenure.hpp>

using namespace tenure;

#ifdef TENURE_CONTROL
std::size_t end(const LockManager& locks) {
  return locks.release_all(TxnId{1});
}
#else
std::size_t end(const LockManager& locks) {
  return locks.release_all(1);
}
#endif
