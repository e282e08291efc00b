#pragma once

#include <string>
#include <string_view>

#include "sys/log.hpp"

namespace tenure::test {

/// A log event as one line of text: `name key=value key=value`.
[[nodiscard]] inline std::string line_of(std::string_view event, log::Fields fields) {
  std::string line(event);
  for (const auto& [key, value] : fields) {
    line += " " + std::string(key) + "=";
    value.append_text(line);
  }
  return line;
}

}  // namespace tenure::test
