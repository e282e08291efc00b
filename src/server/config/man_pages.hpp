#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tenure::server {

/// The page of man(1) of this name, made from the table of settings: "tenured", which is
/// tenured(8), and "tenure.toml", tenure.toml(5).
[[nodiscard]] std::optional<std::string> man_page(std::string_view name);

}  // namespace tenure::server
