#pragma once

#include <algorithm>
#include <string_view>

namespace tenure::sys {

/// Removes and returns the front of `text` up to the next `end`, which is removed, too; the whole
/// text if there is none.
[[nodiscard]] inline std::string_view take_until(std::string_view& text, char end) {
  const auto part = text.substr(0, text.find(end));
  text.remove_prefix(std::min(part.size() + 1, text.size()));
  return part;
}

}  // namespace tenure::sys
