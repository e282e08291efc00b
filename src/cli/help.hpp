#pragma once

#include <string>
#include <string_view>

#include "cli/manual.hpp"

namespace tenure::cli {

/// Text of --help: all commands, or those of a group, such as "cluster".
[[nodiscard]] std::string help_of_all(std::string_view group = {});
/// Text of `tenure COMMAND --help`: synopsis, description, options and examples.
[[nodiscard]] std::string help_of(const Command& command);

/// Wraps text at spaces to `columns`, indented. Keeps empty lines.
[[nodiscard]] std::string wrapped(std::string_view text, std::size_t indent,
                                  std::size_t columns = 80);
/// "-w, --wait DURATION".
[[nodiscard]] std::string spelled(const Option& option);

}  // namespace tenure::cli
