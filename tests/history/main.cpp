// tenure_history check FILE: checks a stored history. Exit code 0: no property is violated.

#include <fstream>
#include <iostream>
#include <span>
#include <string_view>

#include "history/check.hpp"
#include "history/lines.hpp"

namespace {

enum ExitCode : int { valid = 0, violated = 1, usage = 64, no_input = 66 };

int check(const char* path) {
  std::ifstream file(path);
  if (!file) {
    std::cerr << "tenure_history: cannot read " << path << "\n";
    return no_input;
  }
  const auto events = tenure::history::read_lines(file);
  if (!events) {
    std::cerr << "tenure_history: " << path << ": " << events.error().detail << "\n";
    return no_input;
  }
  const auto history = tenure::history::assemble(*events);
  const auto result = tenure::history::check(history);
  std::cout << result.describe(history) << (result.is_valid() ? "valid\n" : "VIOLATED\n");
  return result.is_valid() ? valid : violated;
}

}  // namespace

int main(int argc, char** argv) {
  const std::span arguments(argv, static_cast<std::size_t>(argc));
  if (arguments.size() != 3 || std::string_view(arguments[1]) != "check") {
    std::cerr << "usage: tenure_history check FILE\n";
    return usage;
  }
  return check(arguments[2]);
}
