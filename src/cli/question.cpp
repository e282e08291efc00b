#include "cli/question.hpp"

#include <iostream>
#include <string>

#include <unistd.h>

namespace tenure::cli {

Result<void> confirmed(const Arguments& arguments, std::string_view question) {
  if (arguments.has("--yes")) {
    return {};
  }
  if (isatty(STDIN_FILENO) != 1) {
    return fail(Errc::invalid_argument, "nobody is here to be asked; --yes does it without asking");
  }
  std::cerr << question << " [y/N] " << std::flush;
  std::string answer;
  std::getline(std::cin, answer);
  if (answer == "y" || answer == "Y" || answer == "yes") {
    return {};
  }
  return fail(Errc::cancelled, "nothing was done");
}

}  // namespace tenure::cli
