#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>

namespace tenure::sys {

/// Hexadecimal digits of a number in lower case, with zeros in front up to `digits_min`.
[[nodiscard]] inline std::string to_hex(std::uint64_t number, std::size_t digits_min = 1) {
  std::array<char, 16> digits{};
  const auto end = std::to_chars(digits.begin(), digits.end(), number, 16).ptr;
  const auto size = static_cast<std::size_t>(end - digits.data());
  return std::string(digits_min - std::min(size, digits_min), '0').append(digits.data(), size);
}

}  // namespace tenure::sys
