#include "cli/manual.hpp"

#include <array>
#include <iterator>

#include "cli/manual_parts.hpp"

namespace tenure::cli {
namespace {

/// Texts with their final layout: --help and tenure(1) print them unchanged.
constexpr std::array all_help_sections{
    HelpSection{
        "Environment",
        "  TENURE_URL         URL of the lock service; --url takes precedence\n"
        "  TENURE_CONTEXT     context of the configuration file; --context and TENURE_URL take\n"
        "                     precedence\n"
        "  TENURE_CONFIG      configuration file [~/.config/tenure/config.toml]\n"
        "  TENURE_AUTH_TOKEN  authentication token for a tenured with users, as printed by\n"
        "                     `tenured token`; --token-file and the URL take precedence\n"
        "  TENURE_AUTH_FILE   file that contains the token; TENURE_AUTH_TOKEN takes precedence\n"
        "  NO_COLOR           disables colors if set and not empty\n"},
    HelpSection{
        "Exit codes",
        "  0    success\n"
        "  1    negative result: nothing is held, a check failed, a file is damaged\n"
        "  64   usage error: invalid option, name or URL, or not supported by the backend\n"
        "  69   no server is reachable, or a limit is reached\n"
        "  70   internal error\n"
        "  75   not acquired: another owner has the lock (see --conflict-exit-code)\n"
        "  77   permission denied\n"
        "  79   the lock was lost, or about to be lost; or the command exceeded --at-most\n"
        "  126  the command cannot be executed; 127: command not found\n"
        "  128+n  terminated by signal n; `tenure run` returns the exit code of its command\n"},
};

}  // namespace

const std::vector<Command>& commands() {
  // Built by the first call, because it joins the parts of other files.
  static const auto all = [] {
    std::vector<Command> made;
    for (auto&& part : {lock_commands(), service_commands(), tool_commands()}) {
      made.insert(made.end(), part.begin(), part.end());
    }
    return made;
  }();
  return all;
}

const std::vector<Option>& common_options() {
  static const std::vector<Option> all{
      {"-u,--url", "URL",
       "URL of the lock service: tenure://host:port,..., redis://host:port [TENURE_URL, or "
       "tenure://127.0.0.1:7420]"},
      {"--context", "NAME",
       "Context of the configuration file ~/.config/tenure/config.toml: URL, token file, owner and "
       "timeout [TENURE_CONTEXT, or `context` in the file]"},
      {"--token-file", "FILE",
       "File containing the authentication token for a tenured with users [TENURE_AUTH_TOKEN, or "
       "the file named by TENURE_AUTH_FILE]"},
      {"--owner", "TEXT",
       "Display name of the lock owner [host name, process id and a random number]"},
      {"--timeout", "DURATION", "Timeout of requests to the server [5s]"},
      {"--retry", "DURATION",
       "Retry for up to this time while no server is reachable [commands that wait for a lock: "
       "--wait; others: no retry]"},
      {"-o,--output", "FORMAT", "Output format: table, json or quiet [table]", "table json quiet"},
      {"-j,--json", "", "Same as --output json"},
  };
  return all;
}

std::span<const HelpSection> help_sections() {
  return all_help_sections;
}

// A group is no command of its own, so its summary is not in the command table.
std::string_view summary_of_group(std::string_view group) {
  if (group == "cluster") {
    return "Show and change the members of a cluster";
  }
  if (group == "lease") {
    return "List, grant, renew and revoke leases";
  }
  if (group == "users") {
    return "Reload the users of servers";
  }
  if (group == "fence") {
    return "Check fencing tokens";
  }
  return group == "snapshot" ? "Save the state of the server, and inspect saved snapshots" : "";
}

std::vector<std::string_view> names_of(const Option& option) {
  std::vector<std::string_view> names;
  // The views refer to string literals of the table, so they stay valid.
  for (auto rest = option.names; !rest.empty();) {
    const auto comma = rest.find(',');
    names.push_back(rest.substr(0, comma));
    rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
  }
  return names;
}

std::string_view key_of(const Option& option) {
  return names_of(option).back();
}

}  // namespace tenure::cli
