#include "sys/random.hpp"

#include <cstdlib>

#include <sys/random.h>

namespace tenure::sys {
namespace {

void draw(void* room, std::size_t size) {
  // Requests of up to 256 bytes are never interrupted and never short (getrandom(2)).
  if (getrandom(room, size, 0) != static_cast<ssize_t>(size)) {
    std::abort();
  }
}

}  // namespace

std::uint64_t random_id() {
  std::uint64_t id = 0;
  while (id == 0) {
    draw(&id, sizeof id);
  }
  return id;
}

void fill_random(std::span<std::uint8_t> bytes) {
  draw(bytes.data(), bytes.size());
}

}  // namespace tenure::sys
