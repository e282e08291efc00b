#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include <tenure/error.hpp>

#include "server/config/config.hpp"

namespace tenure::server {

/// Changes `config` as a TOML text says. All that is wrong with it (a key that does not exist, a
/// wrong type, a value out of range) is told at once, a line for each: `name:line:column: why`.
[[nodiscard]] Result<void> read_config(std::string_view text, std::string_view name,
                                       Config& config);
/// The same from a file.
[[nodiscard]] Result<void> read_config_file(const std::filesystem::path& file, Config& config);

/// TOML with every setting. read_config() makes the same Config of it.
[[nodiscard]] std::string print_config(const Config& config);

}  // namespace tenure::server
