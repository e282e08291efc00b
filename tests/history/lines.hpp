#pragma once

#include <iosfwd>
#include <string>
#include <string_view>

#include <tenure/error.hpp>

#include "history/event.hpp"

namespace tenure::history {

/// The event as one JSON object without a line end. Fields that say nothing are left out.
[[nodiscard]] std::string to_line(const Event& event);

/// `invalid_argument`, and what is wrong. Fields that are not known are refused: a misspelt one
/// would otherwise take a check away without a word.
[[nodiscard]] Result<Event> from_line(std::string_view line);

/// All lines; the error names the first bad one. Empty lines are left out.
[[nodiscard]] Result<Events> read_lines(std::istream& in);

[[nodiscard]] std::string_view to_string(Kind kind);

}  // namespace tenure::history
