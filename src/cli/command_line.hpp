#pragma once

#include <string>
#include <variant>
#include <vector>

#include "cli/arguments.hpp"
#include "cli/exit_code.hpp"
#include "cli/manual.hpp"

namespace tenure::cli {

/// Nothing is left to be done but to say this.
struct Farewell {
  ExitCode code = ExitCode::done;
  std::string text{};
};

struct Order {
  const Command* command = nullptr;
  Arguments arguments{};
};

/// Without the program's own name.
[[nodiscard]] std::variant<Order, Farewell> read_command_line(std::vector<std::string> words);

}  // namespace tenure::cli
