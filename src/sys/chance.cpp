#include "sys/chance.hpp"

#include <cstdlib>

#include <sys/random.h>

namespace tenure::sys {

std::uint64_t random_id() {
  std::uint64_t id = 0;
  while (id == 0) {
    // Up to 256 bytes are never interrupted and never short (getrandom(2)).
    if (getrandom(&id, sizeof id, 0) != sizeof id) {
      std::abort();
    }
  }
  return id;
}

}  // namespace tenure::sys
