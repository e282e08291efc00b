#pragma once

#include <string>
#include <variant>
#include <vector>

#include "cli/arguments.hpp"
#include "cli/exit_code.hpp"
#include "cli/manual.hpp"

namespace tenure::cli {

/// Text to print before exiting: help, version or a usage error.
struct ExitMessage {
  ExitCode code = ExitCode::done;
  std::string text{};
};

struct Invocation {
  const Command* command = nullptr;
  Arguments arguments{};
};

/// Parses the arguments without the program name.
[[nodiscard]] std::variant<Invocation, ExitMessage> read_command_line(
    std::vector<std::string> words);

}  // namespace tenure::cli
