#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "server/config/config.hpp"
#include "server/config/environment.hpp"
#include "server/process/exit_code.hpp"

namespace tenure::server {

struct Setting;

/// "0.1.0"
[[nodiscard]] std::string_view version();
/// Placeholder for the value of the flag in help texts: "SIZE", "ADDRESS".
[[nodiscard]] std::string value_name(const Setting& setting);

/// Text to print before the program exits: to stdout if `code` is `stopped`, else to stderr.
struct ExitMessage {
  ExitCode code = ExitCode::stopped;
  std::string text{};  ///< Whole lines.
};

/// `tenured seed`: creates the data directory of a member of a new cluster, or of a single node,
/// from another data directory or a snapshot.
/// The options decide whether holds of the source may still be trusted: a backup can be older than
/// the last grants, so locks are withheld until the longest TTL has passed.
struct SeedCommand {
  Config config{};               ///< Checked configuration of the new member.
  std::filesystem::path from{};  ///< Source: a data directory or a saved snapshot.
  bool is_current = false;       ///< Whether the source is the newest state, not a backup.
  bool drops_leases = false;     ///< Whether leases, holds and waits are dropped.
  /// Longest TTL that clients use; empty: limits.ttl_max of the state.
  std::optional<std::chrono::microseconds> longest_ttl{};
};

/// `tenured token`: generates a token for a user.
/// Needs no configuration: the digest is copied into the users file by the operator.
struct TokenCommand {};

/// Result of the command line: a checked Config if the daemon shall run, a subcommand, or an
/// ExitMessage after --help, --version, --print-config, --print-man and errors.
using ParsedCommandLine = std::variant<Config, SeedCommand, TokenCommand, ExitMessage>;

/// Reads the command line, the environment and the file that --config names. Flags override the
/// environment, the environment overrides the file, the file overrides the defaults.
/// Reads files and nothing else: no directory is created and no port is opened. The first error of
/// the command line is reported alone; errors of the configuration are reported together.
[[nodiscard]] ParsedCommandLine read_command_line(std::span<const char* const> arguments,
                                                  Environment environment = {});

}  // namespace tenure::server
