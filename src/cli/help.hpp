#pragma once

#include <string>
#include <string_view>

#include "cli/manual.hpp"

namespace tenure::cli {

/// What --help prints. All commands, or those of a group, such as "cluster".
[[nodiscard]] std::string help_of_all(std::string_view group = {});
[[nodiscard]] std::string help_of(const Command& command);

/// At most `columns` wide, each line after so many spaces. Breaks at spaces; empty lines stay.
[[nodiscard]] std::string wrapped(std::string_view text, std::size_t indent,
                                  std::size_t columns = 80);
/// "-w, --wait DURATION".
[[nodiscard]] std::string spelled(const Option& option);

}  // namespace tenure::cli
