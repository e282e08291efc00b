#pragma once

#include <vector>

#include "cli/manual.hpp"

namespace tenure::cli {

// Parts of the command table; manual.cpp joins them in this order.

/// Commands that acquire locks.
[[nodiscard]] std::vector<Command> lock_commands();
/// Commands that inspect and administer a service.
[[nodiscard]] std::vector<Command> service_commands();
/// Tools.
[[nodiscard]] std::vector<Command> tool_commands();

}  // namespace tenure::cli
