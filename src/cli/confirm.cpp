#include "cli/confirm.hpp"

#include <iostream>
#include <string>

#include <unistd.h>

namespace tenure::cli {

Result<void> confirm(const Arguments& arguments, std::string_view question) {
  if (arguments.has("--yes")) {
    return {};
  }
  if (isatty(STDIN_FILENO) != 1) {
    return fail(Errc::invalid_argument, "stdin is not a terminal, cannot ask; use --yes");
  }
  std::cerr << question << " [y/N] " << std::flush;
  std::string answer;
  std::getline(std::cin, answer);
  if (answer == "y" || answer == "Y" || answer == "yes") {
    return {};
  }
  return fail(Errc::cancelled, "cancelled; nothing was changed");
}

}  // namespace tenure::cli
