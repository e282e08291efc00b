#include "server/config/command_line.hpp"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

// The only place that knows CLI11, which takes long to compile.
#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include "server/config/config_file.hpp"
#include "server/config/man_pages.hpp"
#include "server/config/settings.hpp"
#include "server/config/units.hpp"

namespace tenure::server {
namespace {

constexpr std::string_view footer =
    "Every setting is also a key of a TOML file, as --print-config prints, and an environment\n"
    "variable: --listen-grpc is listen.grpc and TENURE_LISTEN_GRPC. Flags override the "
    "environment,\n"
    "the environment overrides the file.\n"
    "SIGTERM and SIGINT stop the server. SIGHUP reloads users and certificates; without either, "
    "it\n"
    "stops a server that runs on a terminal. Exit codes: 0 stopped, 64 usage, 69 address not\n"
    "available, 70 internal error, 74 data directory or disk, 78 configuration.\n";

/// Heading of a flag in the help.
std::string group_of(const Setting& setting) {
  for (const auto& section : sections()) {
    if (section.name == setting.section()) {
      return std::string(section.title);
    }
  }
  return "Options";
}

/// Parsed flags, before any of them is applied.
/// Kept as texts: precedence and error messages are decided in resolve(), not by the parser.
struct Flags {
  std::string file;
  bool prints_config = false;
  std::string man_page;
  bool prints_version = false;
  bool seeds = false;
  bool generates_token = false;
  std::string seed_from;
  std::string seed_longest_ttl;
  bool seeds_current = false;
  bool seeds_without_holds = false;
  /// Values of the given flags.
  std::map<const Setting*, std::string> values;
};

/// Adds the flag of a setting. The help shows the default in brackets.
void add_setting(CLI::App& app, const Setting& setting, Flags& flags) {
  const auto keep = [&flags, &setting](const std::string& text) { flags.values[&setting] = text; };
  auto help = std::string(setting.help) + " [" + setting.print(Config{}) + "]";
  // A toggle takes no value: its presence means true.
  if (setting.type == ValueType::toggle) {
    app.add_flag_callback(setting.flag(), [keep] { keep("true"); }, help)->group(group_of(setting));
    return;
  }
  app.add_option_function<std::string>(setting.flag(), keep, help)
      ->type_name(value_name(setting))
      ->group(group_of(setting));
}

/// Declares all flags and subcommands. CLI11 keeps references to `flags`.
void describe(CLI::App& app, Flags& flags) {
  app.set_help_flag("-h,--help", "Print this help and exit");
  app.add_flag("-V,--version", flags.prints_version, "Print the version and exit");
  app.add_option("-c,--config", flags.file, "Read settings from this TOML file")->type_name("FILE");
  app.add_flag("--print-config", flags.prints_config,
               "Print the effective settings as TOML and exit");
  app.add_option("--print-man", flags.man_page,
                 "Print a manual page (tenured or tenure.toml) and exit")
      ->type_name("PAGE");
  for (const auto& setting : settings()) {
    add_setting(app, setting, flags);
  }
  // fallthrough() lets `seed` accept all flags of the daemon: a member is seeded with the
  // configuration that it is started with later.
  auto* seed = app.add_subcommand("seed",
                                  "Create the data directory of a member of a new cluster, or "
                                  "without --members of a single node, from an unused data "
                                  "directory, a backup of one, or a file of `tenure snapshot "
                                  "save`, and exit");
  seed->add_option("--from", flags.seed_from, "Data directory, a copy of one, or a saved snapshot")
      ->type_name("PATH")
      ->required();
  seed->add_flag("--current", flags.seeds_current,
                 "The source is the newest state, of a single node that was stopped and is never "
                 "started again: holds continue, and locks are granted at once");
  seed->add_option("--longest-ttl", flags.seed_longest_ttl,
                   "Longest TTL that clients use. No lock is granted for this time after the first "
                   "start, because a client may have acquired it after the backup "
                   "[limits.ttl_max of the state]")
      ->type_name("DURATION");
  seed->add_flag("--without-holds", flags.seeds_without_holds,
                 "Drop all leases, holds and waits, for a state that is too large");
  seed->fallthrough();
  seed->callback([&flags] { flags.seeds = true; });
  app.add_subcommand(
         "token",
         "Generate a token for a user: print it to stdout, and the line with its digest "
         "for the users file (--auth-file) to stderr, and exit")
      ->callback([&flags] { flags.generates_token = true; });
  app.footer(std::string(footer));
  app.get_formatter()->column_width(40);
}

/// Prefixes each line with the program name, so that it shows its origin in mixed output.
ExitMessage exit_with(ExitCode code, std::string_view errors) {
  std::string text;
  while (!errors.empty()) {
    const auto line = errors.substr(0, errors.find('\n'));
    text += "tenured: " + std::string(line) + '\n';
    errors.remove_prefix(std::min(line.size() + 1, errors.size()));
  }
  return {.code = code, .text = std::move(text)};
}

/// REQUIRES: `config` is checked.
ParsedCommandLine seed_command(const Flags& flags, Config config) {
  SeedCommand command{.config = std::move(config),
                      .from = flags.seed_from,
                      .is_current = flags.seeds_current,
                      .drops_leases = flags.seeds_without_holds};
  if (flags.seed_longest_ttl.empty()) {
    return command;
  }
  const auto longest = parse_duration(flags.seed_longest_ttl);
  if (!longest) {
    return exit_with(ExitCode::usage, "--longest-ttl: " + longest.error().detail);
  }
  // An error and not ignored: the operator would otherwise believe in a protection that is off.
  if (flags.seeds_current && !flags.seeds_without_holds) {
    return exit_with(ExitCode::usage,
                     "--longest-ttl: has no effect with --current, which grants locks at once");
  }
  command.longest_ttl = *longest;
  return command;
}

/// Applies the file, then the environment.
Result<Config> read_settings(const std::string& file, Environment environment) {
  Config config;
  if (!file.empty()) {
    if (auto read = read_config_file(file, config); !read) {
      return std::unexpected(std::move(read).error());
    }
  }
  if (auto read = read_environment(environment, config); !read) {
    return std::unexpected(std::move(read).error());
  }
  return config;
}

/// Error of a configuration, with the warnings: a misspelled variable is a probable cause.
ExitMessage reject(const Error& error, Environment environment, const Config& config) {
  auto lines = error.detail;
  for (const auto& warning : warnings_about(environment, config)) {
    lines += '\n' + warning;
  }
  return exit_with(ExitCode::configuration, lines);
}

/// Applies the file, the environment and the flags in this order, then checks the result: a flag
/// can correct a value of the file.
ParsedCommandLine resolve(const Flags& flags, Environment environment) {
  // Requests for information first: they must work with an invalid or missing configuration.
  if (flags.prints_version) {
    return ExitMessage{.text = "tenured " + std::string(version()) + '\n'};
  }
  if (flags.generates_token) {
    return TokenCommand{};
  }
  if (!flags.man_page.empty()) {
    auto page = man_page(flags.man_page);
    return page ? ExitMessage{.text = *std::move(page)}
                : exit_with(ExitCode::usage, "--print-man: expected tenured or tenure.toml");
  }
  auto read = read_settings(flags.file, environment);
  if (!read) {
    return exit_with(ExitCode::configuration, read.error().detail);
  }
  auto& config = *read;
  // The first invalid flag is reported; flags are few, unlike the errors of a file.
  for (const auto& [setting, text] : flags.values) {
    if (const auto assigned = setting->assign(config, text); !assigned) {
      // Exit code 64 for a flag, 78 for file and environment: scripts can distinguish them.
      return exit_with(ExitCode::usage, setting->flag() + ": " + assigned.error().detail);
    }
  }
  if (flags.prints_config) {
    // Before check(): printing an invalid configuration helps to find the mistake.
    return ExitMessage{.text = print_config(config)};
  }
  if (const auto checked = check(config); !checked) {
    return reject(checked.error(), environment, config);
  }
  if (flags.seeds) {
    // A joining member gets its state from the leader; a seeded state could differ from it.
    if (config.cluster.join) {
      return exit_with(
          ExitCode::usage,
          "seed: a joining member receives the state from its peers; only initial members "
          "(--members) are seeded");
    }
    return seed_command(flags, std::move(config));
  }
  return config;
}

}  // namespace

std::string_view version() {
  return TENURE_VERSION;
}

std::string value_name(const Setting& setting) {
  switch (setting.type) {
    case ValueType::count: return "NUMBER";
    case ValueType::size: return "SIZE";
    case ValueType::duration: return "DURATION";
    case ValueType::toggle:
    case ValueType::text: break;
  }
  if (!setting.expected.empty()) {
    return "WORD";
  }
  return setting.section() == "listen" ? "ADDRESS" : "TEXT";
}

ParsedCommandLine read_command_line(std::span<const char* const> arguments,
                                    Environment environment) {
  CLI::App app("tenured: the lock service of Tenure", "tenured");
  Flags flags;
  describe(app, flags);
  try {
    app.parse(static_cast<int>(arguments.size()), arguments.data());
  } catch (const CLI::CallForHelp&) {
    return ExitMessage{.text = app.help()};
  } catch (const CLI::ParseError& error) {
    return exit_with(ExitCode::usage, std::string(error.what()) + "\nsee tenured --help");
  }
  return resolve(flags, environment);
}

}  // namespace tenure::server
