#include "sys/process.hpp"

#include <array>
#include <cstdint>

#include <unistd.h>

#include "sys/random.hpp"

namespace tenure::sys {

std::string process_label() {
  constexpr std::size_t host_bytes_max = 64;
  std::array<char, host_bytes_max + 1> host{};
  if (gethostname(host.data(), host_bytes_max) != 0) {
    host[0] = '?';
  }
  constexpr std::string_view digits = "0123456789abcdef";
  std::string random;
  for (auto bits = random_id() & 0xFFFF'FFFFU; random.size() < 8; bits >>= 4) {
    random.push_back(digits[bits & 0xF]);
  }
  return std::string(host.data()) + "." + std::to_string(getpid()) + "." + random;
}

}  // namespace tenure::sys
