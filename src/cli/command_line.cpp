#include "cli/command_line.hpp"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

// The only place that knows CLI11, which takes long to compile.
#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include "cli/help.hpp"

namespace tenure::cli {
namespace {

using Words = std::vector<std::string>;

Farewell wrong(const std::string& complaint) {
  return {.code = ExitCode::usage, .text = "tenure: " + complaint + "\n"};
}

const Option* find_option(const Command* command, std::string_view name) {
  const auto search = [&](const std::vector<Option>& options) -> const Option* {
    const auto it = std::ranges::find_if(options, [&](const Option& option) {
      const auto names = names_of(option);
      return std::ranges::find(names, name) != names.end();
    });
    return it == options.end() ? nullptr : &*it;
  };
  const auto* found = command != nullptr ? search(command->options) : nullptr;
  return found != nullptr ? found : search(common_options());
}

/// Does the word after this one belong to it? Such as to `-w` and `--wait`, not to `-w5`,
/// `--wait=5` or a word that is no option.
bool takes_next(const Command* command, std::string_view word) {
  const auto* option = find_option(command, word);
  return option != nullptr && !option->value.empty();
}

/// Where the first word from `begin` on stands that is neither an option nor what one takes.
std::size_t first_word(const Words& words, std::size_t begin, const Command* command) {
  for (auto at = begin; at < words.size(); ++at) {
    if (!words[at].starts_with('-') || words[at] == "-") {
      return at;
    }
    at += takes_next(command, words[at]) ? 1 : 0;
  }
  return words.size();
}

const Command* find_command(std::string_view name) {
  const auto& all = commands();
  const auto it = std::ranges::find(all, name, &Command::name);
  return it == all.end() ? nullptr : &*it;
}

bool is_group(std::string_view name) {
  return std::ranges::any_of(commands(), [&](const Command& command) {
    return command.name.starts_with(std::string(name) + " ");
  });
}

/// Which command is meant. Not left to CLI11: it would take a lock that is named like a command for
/// one.
struct Meant {
  std::string name{};  ///< Or of the group, or of what is neither.
  const Command* command = nullptr;
};

/// Takes the words that name the command out.
Meant take_name(Words& words) {
  Meant meant;
  const auto take = [&](std::size_t at) {
    auto word = std::move(words[at]);
    words.erase(words.begin() + static_cast<std::ptrdiff_t>(at));
    return word;
  };
  auto at = first_word(words, 0, nullptr);
  if (at < words.size()) {
    meant.name = take(at);
    at = first_word(words, at, nullptr);
    if (is_group(meant.name) && at < words.size()) {
      meant.name += " " + take(at);
    }
    meant.command = find_command(meant.name);
  }
  return meant;
}

/// Cuts the command to be run off the end: behind `--`, or, as flock(1) has it, behind the first
/// name. CLI11 would take its options for ours.
Words cut_command(Words& words, const Command& command) {
  const auto cut = [&](std::size_t begin, std::size_t skipped) {
    Words rest(words.begin() + static_cast<std::ptrdiff_t>(std::min(begin + skipped, words.size())),
               words.end());
    words.resize(std::min(begin, words.size()));
    return rest;
  };
  const auto dashes = std::ranges::find(words, "--");
  if (dashes != words.end()) {
    return cut(static_cast<std::size_t>(dashes - words.begin()), 1);
  }
  const auto name = first_word(words, 0, &command);
  auto rest = cut(name + 1, 0);
  const bool is_shell = rest.size() == 2 && (rest[0] == "-c" || rest[0] == "--command");
  if (is_shell) {
    return {"/bin/sh", "-c", rest[1]};
  }
  if (!rest.empty() && rest[0].starts_with('-')) {
    // An option behind the name, and no command: then it is ours.
    words.insert(words.end(), rest.begin(), rest.end());
    return {};
  }
  return rest;
}

/// What CLI11 writes into.
struct Reading {
  bool asks_help = false;
  bool asks_version = false;
  Arguments arguments{};
};

void add_option(CLI::App& app, const Option& option, Reading& reading) {
  const std::string key(key_of(option));
  const std::string names(option.names);
  const std::string help(option.help);
  if (option.value.empty()) {
    app.add_flag_callback(names, [&reading, key] { reading.arguments.options[key] = ""; }, help);
    return;
  }
  auto* added = app.add_option_function<std::string>(
      names, [&reading, key](const std::string& text) { reading.arguments.options[key] = text; },
      help);
  added->type_name(std::string(option.value));
  if (!option.choices.empty()) {
    const auto choices = " " + std::string(option.choices) + " ";
    added->check([choices](const std::string& text) {
      return choices.find(" " + text + " ") != std::string::npos
                 ? std::string()
                 : "\"" + text + "\" is none of" + choices;
    });
  }
}

void describe(CLI::App& app, const Command* command, Reading& reading) {
  app.set_help_flag();
  app.add_flag("-h,--help", reading.asks_help);
  app.add_flag("-V,--version", reading.asks_version);
  for (const auto& option : common_options()) {
    add_option(app, option, reading);
  }
  if (command == nullptr) {
    return;
  }
  for (const auto& option : command->options) {
    add_option(app, option, reading);
  }
  if (command->words_max > 0) {
    // How many it takes at least is judged later: who asks for help gives none.
    app.add_option("words", reading.arguments.words)
        ->expected(0, static_cast<int>(command->words_max));
  }
}

/// What was read, if it says what to do.
std::variant<Order, Farewell> settle(Reading reading, const Meant& meant) {
  if (reading.asks_version) {
    return Farewell{.text = "tenure " TENURE_VERSION "\n"};
  }
  if (meant.command == nullptr) {
    const bool is_known = meant.name.empty() || is_group(meant.name);
    return is_known ? Farewell{.code = reading.asks_help ? ExitCode::done : ExitCode::usage,
                               .text = help_of_all(meant.name)}
                    : wrong("there is no command \"" + meant.name + "\"\nsee tenure --help");
  }
  const auto& asked = *meant.command;
  if (reading.asks_help) {
    return Farewell{.text = help_of(asked)};
  }
  if (reading.arguments.words.size() < asked.words_min) {
    return wrong(std::string(asked.name) + " needs " + std::string(asked.synopsis) +
                 "\nsee tenure " + std::string(asked.name) + " --help");
  }
  return Order{.command = meant.command, .arguments = std::move(reading.arguments)};
}

}  // namespace

std::variant<Order, Farewell> read_command_line(Words words) {
  const auto meant = take_name(words);
  CLI::App app("tenure: locks from the command line", "tenure");
  Reading reading;
  describe(app, meant.command, reading);
  if (meant.command != nullptr && meant.command->takes_command) {
    reading.arguments.command = cut_command(words, *meant.command);
  }
  std::ranges::reverse(words);  // As CLI11 wants them.
  try {
    app.parse(std::move(words));
  } catch (const CLI::ParseError& error) {
    return wrong(std::string(error.what()) + "\nsee tenure " +
                 (meant.command != nullptr ? meant.name + " " : "") + "--help");
  }
  return settle(std::move(reading), meant);
}

}  // namespace tenure::cli
