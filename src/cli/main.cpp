// tenure: command-line client. docs/reference/cli.md is its manual.

#include <cstdio>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "cli/command_line.hpp"

int main(int count, char** arguments) {
  using namespace tenure::cli;
  std::vector<std::string> words(arguments + (count > 0 ? 1 : 0), arguments + count);
  const auto read = read_command_line(std::move(words));
  if (const auto* message = std::get_if<ExitMessage>(&read)) {
    std::fputs(message->text.c_str(), message->code == ExitCode::done ? stdout : stderr);
    return code(message->code);
  }
  const auto& invocation = std::get<Invocation>(read);
  return invocation.command->run(invocation.arguments);
}
