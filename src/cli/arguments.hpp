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

/// What was said on the command line, after the options' names are known to be right.
class Arguments {
 public:
  std::vector<std::string> words{};                           ///< Those that are no options: names.
  std::vector<std::string> command{};                         ///< To be run, if any.
  std::map<std::string, std::string, std::less<>> options{};  ///< By their last name.

  [[nodiscard]] bool has(std::string_view option) const { return options.contains(option); }
  [[nodiscard]] std::optional<std::string> text(std::string_view option) const;
  /// `invalid_argument` names the option.
  [[nodiscard]] Result<std::optional<std::chrono::milliseconds>> duration(
      std::string_view option) const;
  /// At most `most`.
  [[nodiscard]] Result<std::optional<std::uint64_t>> number(std::string_view option,
                                                            std::uint64_t most) const;
};

/// "250ms", "30s", "2m", "1h"; a number without a unit is seconds, also "0.5", as flock(1) has it.
[[nodiscard]] Result<std::chrono::milliseconds> parse_duration(std::string_view text);
[[nodiscard]] Result<std::uint64_t> parse_number(std::string_view text, std::uint64_t most);

}  // namespace tenure::cli
