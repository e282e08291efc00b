#pragma once

#include <string_view>

#include "cli/arguments.hpp"

namespace tenure::cli {

/// Confirmation of an irreversible operation, by --yes or by the user at the terminal. Without
/// either, an error. `cancelled` after any answer but yes; `invalid_argument` without a terminal.
/// Asks on stderr and reads one line from stdin.
[[nodiscard]] Result<void> confirm(const Arguments& arguments, std::string_view question);

}  // namespace tenure::cli
