#pragma once

#include <string_view>

#include "cli/arguments.hpp"

namespace tenure::cli {

/// Confirmation of an irreversible operation, by --yes or by the user at the terminal. Without
/// either, an error.
[[nodiscard]] Result<void> confirm(const Arguments& arguments, std::string_view question);

}  // namespace tenure::cli
