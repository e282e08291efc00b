#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include <tenure/error.hpp>

#include "server/config/config.hpp"

namespace tenure::server {

/// Applies a TOML text to `config`. Reports all errors at once (unknown keys, wrong types, values
/// out of range), one line each: `name:line:column: error`.
/// On failure `config` contains the valid values and must not be used. Keys that the text does not
/// contain keep their values.
[[nodiscard]] Result<void> read_config(std::string_view text, std::string_view name,
                                       Config& config);
/// Like read_config(), for the contents of a file.
[[nodiscard]] Result<void> read_config_file(const std::filesystem::path& file, Config& config);

/// TOML with every setting, its help and its range. read_config() restores the same Config.
/// A complete file also documents the defaults that were in force when it was printed.
[[nodiscard]] std::string print_config(const Config& config);

}  // namespace tenure::server
