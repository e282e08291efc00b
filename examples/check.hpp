#pragma once

#include <cstdlib>
#include <iostream>
#include <string_view>

/// Prints `line`, which describes a fact; ends the program with an error if it does not hold.
inline void check(bool holds, std::string_view line) {
  if (!holds) {
    std::cout << "FAILED: " << line << '\n' << std::flush;
    std::exit(EXIT_FAILURE);
  }
  std::cout << line << '\n';
}
