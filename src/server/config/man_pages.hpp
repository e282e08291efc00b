#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tenure::server {

/// Manual page in roff, generated from the table of settings: "tenured" is tenured(8),
/// "tenure.toml" is tenure.toml(5). Empty for other names.
/// Packages contain the output of --print-man, so the pages cannot differ from the program.
[[nodiscard]] std::optional<std::string> man_page(std::string_view name);

}  // namespace tenure::server
