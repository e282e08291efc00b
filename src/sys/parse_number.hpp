#pragma once

#include <charconv>
#include <concepts>
#include <optional>
#include <string_view>
#include <system_error>

namespace tenure::sys {

/// Parses a number that is the whole text: digits, and '-' for signed types. Nothing if the text
/// is empty, has any other character, or the number does not fit.
template <std::integral Number>
[[nodiscard]] std::optional<Number> parse_number(std::string_view text, int base = 10) noexcept {
  Number number{};
  const auto* const begin = text.data();
  const auto* const end = begin + text.size();
  const auto [rest, error] = std::from_chars(begin, end, number, base);
  return error == std::errc{} && rest == end ? std::optional(number) : std::nullopt;
}

}  // namespace tenure::sys
