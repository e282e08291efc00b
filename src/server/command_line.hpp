#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "server/config.hpp"
#include "server/exit_code.hpp"

namespace tenure::server {

/// "0.1.0"
[[nodiscard]] std::string_view version();

/// What to say before leaving: to stdout if all is well, else to stderr.
struct Farewell {
  ExitCode code = ExitCode::stopped;
  std::string text{};  ///< Whole lines.
};

/// `tenured seed`: to make the folder of a member of a new cluster out of that of a single node.
struct SeedOrder {
  Config config{};               ///< Of the member; checked.
  std::filesystem::path from{};  ///< The folder of the single node.
};

/// A Config that was checked, if the daemon shall run. A Farewell after --help, --version,
/// --print-config, and after mistakes.
using Order = std::variant<Config, SeedOrder, Farewell>;

/// Reads the command line and the file it names; flags win over the file, the file over defaults.
[[nodiscard]] Order read_command_line(std::span<const char* const> arguments);

}  // namespace tenure::server
