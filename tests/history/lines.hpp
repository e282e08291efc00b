#pragma once

#include <iosfwd>
#include <string>
#include <string_view>

#include <tenure/error.hpp>

#include "history/event.hpp"

namespace tenure::history {

/// The event as one JSON object without a newline. Empty fields are omitted.
[[nodiscard]] std::string to_line(const Event& event);

/// `invalid_argument` with a detail. Unknown fields are rejected: a misspelt field would otherwise
/// disable a check without notice.
[[nodiscard]] Result<Event> from_line(std::string_view line);

/// Parses all lines; the error names the first invalid one. Empty lines are skipped.
[[nodiscard]] Result<Events> read_lines(std::istream& in);

[[nodiscard]] std::string_view to_string(Kind kind);

}  // namespace tenure::history
