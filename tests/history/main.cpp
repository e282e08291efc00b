// tenure_history check FILE: judges a stored history. Exit code 0: all that it promises was kept.

#include <fstream>
#include <iostream>
#include <span>
#include <string_view>

#include "history/check.hpp"
#include "history/lines.hpp"

namespace {

enum ExitCode : int { good = 0, broken = 1, usage = 64, no_input = 66 };

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
  const auto verdict = tenure::history::check(history);
  std::cout << verdict.words(history) << (verdict.is_good() ? "good\n" : "BROKEN\n");
  return verdict.is_good() ? good : broken;
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
