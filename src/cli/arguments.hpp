#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tenure/error.hpp>

namespace tenure::cli {

/// Parsed command line. The names of the options are valid; values are parsed on access.
///
/// Accessors return std::nullopt for an option that is not given, so that each command chooses its
/// default.
class Arguments {
 public:
  std::vector<std::string> words{};    ///< Positional arguments.
  std::vector<std::string> command{};  ///< Command to run, if there is one.
  std::map<std::string, std::string, std::less<>>
      options{};  ///< Values by the last name of the option.

  /// Whether the option is given; the only question for a flag.
  [[nodiscard]] bool has(std::string_view option) const { return options.contains(option); }
  /// Value of the option as it was typed.
  [[nodiscard]] std::optional<std::string> text(std::string_view option) const;
  /// Parses a duration; errors name the option.
  [[nodiscard]] Result<std::optional<std::chrono::milliseconds>> duration(
      std::string_view option) const;
  /// Parses a number up to `most`.
  [[nodiscard]] Result<std::optional<std::uint64_t>> number(std::string_view option,
                                                            std::uint64_t most) const;
};

/// Parses "250ms", "30s", "2m", "1h". As in flock(1), a number without a unit is seconds and may
/// have a fraction.
[[nodiscard]] Result<std::chrono::milliseconds> parse_duration(std::string_view text);
/// Parses a decimal number from 0 to `most`; rejects signs, spaces and trailing characters.
[[nodiscard]] Result<std::uint64_t> parse_number(std::string_view text, std::uint64_t most);

}  // namespace tenure::cli
