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
    "Every setting can be given in a TOML file as well: --print-config writes one.\n"
    "SIGTERM and SIGINT stop the daemon. SIGHUP makes it read its users again; without users it\n"
    "stops it, if it runs on a terminal. Exit codes: 0 stopped, 64 usage, 69 an address cannot be\n"
    "bound, 70 a bug, 74 data directory or disk, 78 configuration.\n";

std::string group_of(const Setting& setting) {
  for (const auto& section : sections()) {
    if (section.name == setting.section()) {
      return std::string(section.title);
    }
  }
  return "Options";
}

/// What the flags said, before anything is done with it.
struct Flags {
  std::string file;
  bool prints_config = false;
  std::string man_page;
  bool asks_version = false;
  bool seeds = false;
  bool makes_token = false;
  std::string seed_from;
  std::string seed_longest_ttl;
  bool seeds_current = false;
  bool seeds_without_holds = false;
  std::map<const Setting*, std::string> values;
};

void add_setting(CLI::App& app, const Setting& setting, Flags& flags) {
  const auto keep = [&flags, &setting](const std::string& text) { flags.values[&setting] = text; };
  auto help = std::string(setting.help) + " [" + setting.print(Config{}) + "]";
  if (setting.type == ValueType::toggle) {
    app.add_flag_callback(setting.flag(), [keep] { keep("true"); }, help)->group(group_of(setting));
    return;
  }
  app.add_option_function<std::string>(setting.flag(), keep, help)
      ->type_name(value_name(setting))
      ->group(group_of(setting));
}

void describe(CLI::App& app, Flags& flags) {
  app.set_help_flag("-h,--help", "Print this and exit");
  app.add_flag("-V,--version", flags.asks_version, "Print the version and exit");
  app.add_option("-c,--config", flags.file, "Read settings from this TOML file")->type_name("FILE");
  app.add_flag("--print-config", flags.prints_config,
               "Print the settings that would be used, as TOML, and exit");
  app.add_option("--print-man", flags.man_page,
                 "Print a manual page, tenured or tenure.toml, and exit")
      ->type_name("PAGE");
  for (const auto& setting : settings()) {
    add_setting(app, setting, flags);
  }
  // Takes all flags of the daemon, which follow it or are in the file: a member is seeded with the
  // configuration that it will be started with.
  auto* seed = app.add_subcommand("seed",
                                  "Make the data directory of a member of a new cluster, or "
                                  "without --members of a single node, out of one that is not in "
                                  "use, a backup of it, or a file of `tenure snapshot save`; "
                                  "then exit");
  seed->add_option("--from", flags.seed_from,
                   "Data directory of the node, a copy of it, or a saved snapshot")
      ->type_name("PATH")
      ->required();
  seed->add_flag("--current", flags.seeds_current,
                 "It is the newest state, of a single node that was stopped and will not be "
                 "started again: holds go on, and locks are granted at once");
  seed->add_option("--longest-ttl", flags.seed_longest_ttl,
                   "No lock is granted for this long after the first start, because a client may "
                   "have been granted it after the backup: the longest ttl that clients use "
                   "[limits.ttl_max of the state]")
      ->type_name("DURATION");
  seed->add_flag("--without-holds", flags.seeds_without_holds,
                 "Drop all leases, holds and waits, for a state that is too large");
  seed->fallthrough();
  seed->callback([&flags] { flags.seeds = true; });
  app.add_subcommand("token",
                     "Make a token for a user: print it to stdout, and to stderr the line for the "
                     "file of users (--auth-file), which has only its digest; then exit")
      ->callback([&flags] { flags.makes_token = true; });
  app.footer(std::string(footer));
  app.get_formatter()->column_width(40);
}

ExitMessage wrong(ExitCode code, std::string_view errors) {
  std::string text;
  while (!errors.empty()) {
    const auto line = errors.substr(0, errors.find('\n'));
    text += "tenured: " + std::string(line) + '\n';
    errors.remove_prefix(std::min(line.size() + 1, errors.size()));
  }
  return {.code = code, .text = std::move(text)};
}

ParsedCommandLine seed_order(const Flags& flags, Config config) {
  SeedCommand command{.config = std::move(config),
                      .from = flags.seed_from,
                      .is_current = flags.seeds_current,
                      .drops_leases = flags.seeds_without_holds};
  if (flags.seed_longest_ttl.empty()) {
    return command;
  }
  const auto longest = parse_duration(flags.seed_longest_ttl);
  if (!longest) {
    return wrong(ExitCode::usage, "--longest-ttl: " + longest.error().detail);
  }
  if (flags.seeds_current && !flags.seeds_without_holds) {
    return wrong(ExitCode::usage, "--longest-ttl: a --current state grants locks at once");
  }
  command.longest_ttl = *longest;
  return command;
}

ParsedCommandLine settle(const Flags& flags) {
  if (flags.asks_version) {
    return ExitMessage{.text = "tenured " + std::string(version()) + '\n'};
  }
  if (flags.makes_token) {
    return TokenCommand{};
  }
  if (!flags.man_page.empty()) {
    auto page = man_page(flags.man_page);
    return page ? ExitMessage{.text = *std::move(page)}
                : wrong(ExitCode::usage, "--print-man: either tenured or tenure.toml");
  }
  Config config;
  if (!flags.file.empty()) {
    if (const auto read = read_config_file(flags.file, config); !read) {
      return wrong(ExitCode::configuration, read.error().detail);
    }
  }
  for (const auto& [setting, text] : flags.values) {
    if (const auto assigned = setting->assign(config, text); !assigned) {
      return wrong(ExitCode::usage, setting->flag() + ": " + assigned.error().detail);
    }
  }
  if (flags.prints_config) {
    // Also one that would be refused: it is printed so that somebody can look for the mistake.
    return ExitMessage{.text = print_config(config)};
  }
  if (const auto checked = check(config); !checked) {
    return wrong(ExitCode::configuration, checked.error().detail);
  }
  if (flags.seeds) {
    if (config.cluster.join) {
      return wrong(ExitCode::usage,
                   "seed: who joins gets everything from the others; only those that a cluster "
                   "begins with are seeded: --members");
    }
    return seed_order(flags, std::move(config));
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

ParsedCommandLine read_command_line(std::span<const char* const> arguments) {
  CLI::App app("tenured: the lock service of Tenure", "tenured");
  Flags flags;
  describe(app, flags);
  try {
    app.parse(static_cast<int>(arguments.size()), arguments.data());
  } catch (const CLI::CallForHelp&) {
    return ExitMessage{.text = app.help()};
  } catch (const CLI::ParseError& error) {
    return wrong(ExitCode::usage, std::string(error.what()) + "\nsee tenured --help");
  }
  return settle(flags);
}

}  // namespace tenure::server
