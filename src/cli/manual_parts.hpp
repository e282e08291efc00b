#pragma once

#include <vector>

#include "cli/manual.hpp"

namespace tenure::cli {

/// For those who want locks.
[[nodiscard]] std::vector<Command> lock_commands();
/// For those who look after them.
[[nodiscard]] std::vector<Command> service_commands();
/// About the command itself.
[[nodiscard]] std::vector<Command> tool_commands();

}  // namespace tenure::cli
