#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tenure::cli {

/// Candidate that differs from a mistyped word least, by edit distance; empty if none is
/// similar.
[[nodiscard]] std::string closest(std::string_view word,
                                  const std::vector<std::string_view>& candidates);

}  // namespace tenure::cli
