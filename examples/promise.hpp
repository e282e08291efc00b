#pragma once

#include <cstdlib>
#include <iostream>
#include <string_view>

/// Prints a line that says what happened; ends the program with an error if it did not happen.
inline void promise(bool kept, std::string_view line) {
  if (!kept) {
    std::cout << "NOT AS PROMISED: " << line << '\n' << std::flush;
    std::exit(EXIT_FAILURE);
  }
  std::cout << line << '\n';
}
