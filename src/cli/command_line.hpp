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

/// Command to run, and its arguments.
struct Invocation {
  /// Entry of the command table, which lives as long as the process.
  const Command* command = nullptr;
  Arguments arguments{};
};

/// Parses the arguments without the program name. Neither prints nor exits, so that tests can call
/// it.
[[nodiscard]] std::variant<Invocation, ExitMessage> read_command_line(
    std::vector<std::string> words);

}  // namespace tenure::cli
