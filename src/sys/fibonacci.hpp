#pragma once

#include <cstdint>

namespace tenure::sys {

/// Fibonacci hashing: multiplication by 2^64 / golden ratio, which spreads sequential numbers
/// evenly (Knuth, The Art of Computer Programming 3, 6.4). Use the upper bits.
[[nodiscard]] constexpr std::uint64_t fibonacci_hash(std::uint64_t number) noexcept {
  return number * 0x9E37'79B9'7F4A'7C15ULL;
}

}  // namespace tenure::sys
