// tenure: command-line client. docs/reference/cli.md is its manual.

#include <cstdio>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "cli/command_line.hpp"
#include "cli/context.hpp"
#include "cli/output.hpp"

int main(int count, char** arguments) {
  using namespace tenure::cli;
  // A caller of exec may pass an empty argument array.
  std::vector<std::string> words(arguments + (count > 0 ? 1 : 0), arguments + count);
  const auto read = read_command_line(std::move(words));
  if (const auto* message = std::get_if<ExitMessage>(&read)) {
    // Help that the user has requested is output; a usage error must not reach a pipe.
    std::fputs(message->text.c_str(), message->code == ExitCode::done ? stdout : stderr);
    return code(message->code);
  }
  auto invocation = std::get<Invocation>(read);
  if (invocation.command->uses_server) {
    if (const auto applied = apply_context(invocation.arguments); !applied) {
      return failed(applied.error());
    }
  }
  // The return value of a command is the exit code of the process.
  return invocation.command->run(invocation.arguments);
}
