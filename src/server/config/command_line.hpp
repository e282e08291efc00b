#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "server/config/config.hpp"
#include "server/process/exit_code.hpp"

namespace tenure::server {

struct Setting;

/// "0.1.0"
[[nodiscard]] std::string_view version();
/// What stands for the value of its flag: "SIZE", "ADDRESS".
[[nodiscard]] std::string value_name(const Setting& setting);

/// What to say before leaving: to stdout if all is well, else to stderr.
struct ExitMessage {
  ExitCode code = ExitCode::stopped;
  std::string text{};  ///< Whole lines.
};

/// `tenured seed`: to make the folder of a member of a new cluster, or of a single node, out of
/// that of a member or of a copy of it.
struct SeedCommand {
  Config config{};               ///< Of the member; checked.
  std::filesystem::path from{};  ///< The folder of the other, or a saved snapshot.
  bool is_current = false;       ///< It is the last state, not a backup.
  bool drops_leases = false;
  /// The longest ttl that a client may rely on. Nothing: what the state allows.
  std::optional<std::chrono::microseconds> longest_ttl{};
};

/// `tenured token`: to make a token for a user.
struct TokenCommand {};

/// A Config that was checked, if the daemon shall run. A Farewell after --help, --version,
/// --print-config, --print-man, and after mistakes.
using ParsedCommandLine = std::variant<Config, SeedCommand, TokenCommand, ExitMessage>;

/// Reads the command line and the file it names; flags win over the file, the file over defaults.
[[nodiscard]] ParsedCommandLine read_command_line(std::span<const char* const> arguments);

}  // namespace tenure::server
