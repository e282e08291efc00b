#pragma once

#include <string_view>

#include "cli/arguments.hpp"

namespace tenure::cli {

/// May what cannot be undone be done? --yes says so, or a person at the terminal; nobody else.
[[nodiscard]] Result<void> confirmed(const Arguments& arguments, std::string_view question);

}  // namespace tenure::cli
