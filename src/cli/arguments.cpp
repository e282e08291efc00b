#include "cli/arguments.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <system_error>
#include <utility>

#include "sys/parse_number.hpp"

namespace tenure::cli {

std::optional<std::string> Arguments::text(std::string_view option) const {
  const auto it = options.find(option);
  return it == options.end() ? std::nullopt : std::optional(it->second);
}

Result<std::optional<std::chrono::milliseconds>> Arguments::duration(
    std::string_view option) const {
  const auto value = text(option);
  if (!value) {
    return std::nullopt;
  }
  auto parsed = parse_duration(*value);
  if (!parsed) {
    // The name of the option in front: a command line may contain several durations.
    return fail(Errc::invalid_argument, std::string(option) + ": " + parsed.error().detail);
  }
  return *parsed;
}

Result<std::optional<std::uint64_t>> Arguments::number(std::string_view option,
                                                       std::uint64_t most) const {
  const auto value = text(option);
  if (!value) {
    return std::nullopt;
  }
  auto parsed = parse_number(*value, most);
  if (!parsed) {
    return fail(Errc::invalid_argument, std::string(option) + ": " + parsed.error().detail);
  }
  return *parsed;
}

// The bound keeps the conversion to an integer defined: 1e12 ms fit in 64 bits by far. from_chars()
// is independent of the locale, in which the decimal separator may be a comma.
Result<std::chrono::milliseconds> parse_duration(std::string_view text) {
  constexpr double longest = 1e12;  // 31 years, in ms
  // Factors that convert to milliseconds.
  constexpr std::array<std::pair<std::string_view, double>, 6> units{
      {{"", 1e3}, {"ms", 1}, {"s", 1e3}, {"m", 6e4}, {"h", 3.6e6}, {"d", 8.64e7}}};
  double count = 0;
  const auto* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, count, std::chars_format::fixed);
  const std::string_view unit(rest, static_cast<std::size_t>(end - rest));
  for (const auto& [name, factor] : units) {
    if (error == std::errc{} && unit == name && count >= 0 && count * factor <= longest) {
      // Rounded up: a tiny positive timeout must not become zero, which means not to wait.
      return std::chrono::milliseconds(std::llround(std::ceil(count * factor)));
    }
  }
  return fail(Errc::invalid_argument,
              "\"" + std::string(text) + "\" is not a duration; examples: 500ms, 30s, 5m, 1h");
}

Result<std::uint64_t> parse_number(std::string_view text, std::uint64_t most) {
  const auto count = sys::parse_number<std::uint64_t>(text);
  if (!count || *count > most) {
    return fail(
        Errc::invalid_argument,
        "\"" + std::string(text) + "\" is not a whole number from 0 to " + std::to_string(most));
  }
  return *count;
}

}  // namespace tenure::cli
