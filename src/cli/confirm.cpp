#include "cli/confirm.hpp"

#include <iostream>
#include <string>

#include <unistd.h>

namespace tenure::cli {

Result<void> confirm(const Arguments& arguments, std::string_view question) {
  if (arguments.has("--yes")) {
    return {};
  }
  // In a script the question would consume the next line of its input.
  if (isatty(STDIN_FILENO) != 1) {
    return fail(Errc::invalid_argument, "stdin is not a terminal, cannot ask; use --yes");
  }
  // On stderr, because stdout may be redirected to a file.
  std::cerr << question << " [y/N] " << std::flush;
  std::string answer;
  // At the end of the input the answer is empty, which means no.
  std::getline(std::cin, answer);
  if (answer == "y" || answer == "Y" || answer == "yes") {
    return {};
  }
  return fail(Errc::cancelled, "cancelled; nothing was changed");
}

}  // namespace tenure::cli
