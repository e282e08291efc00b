#include "cli/command_line.hpp"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

// CLI11 is included here and in context.cpp only, because it is slow to compile.
#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include "cli/help.hpp"
#include "cli/suggestion.hpp"

namespace tenure::cli {
namespace {

using Words = std::vector<std::string>;

/// Message for an invalid command line, with the exit code of sysexits.h for usage errors.
ExitMessage usage_error(const std::string& text) {
  return {.code = ExitCode::usage, .text = "tenure: " + text + "\n"};
}

/// Option with this spelling, of the command or of all commands; null if there is none.
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

/// Whether the next word is the value of this one: true for `-w`, `-nw` and `--wait`, false for
/// `-w5`, `--wait=5` and words that are not options.
bool takes_next(const Command* command, std::string_view word) {
  if (word.starts_with("--") || word.size() < 2 || word.front() != '-') {
    const auto* option = find_option(command, word);
    return option != nullptr && !option->value.empty();
  }
  // Flags may share one word. The first option with a value takes the rest of the word, or the next
  // one.
  for (std::size_t at = 1; at < word.size(); ++at) {
    const auto* option = find_option(command, "-" + std::string(1, word[at]));
    if (option != nullptr && !option->value.empty()) {
      return at + 1 == word.size();
    }
  }
  return false;
}

/// Index of the first positional argument from `begin` on. Skips options and their values. A single
/// "-" is an argument, by convention stdin.
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

/// Whether commands such as "cluster add" begin with this word.
bool is_group(std::string_view name) {
  return std::ranges::any_of(commands(), [&](const Command& command) {
    return command.name.starts_with(std::string(name) + " ");
  });
}

/// Command by its name. Not parsed by CLI11, which would confuse a lock that is named like a
/// command with the command.
struct NamedCommand {
  std::string name{};  ///< Name of a command, a group, or neither.
  const Command* command = nullptr;
};

/// Removes the words of the command name.
NamedCommand take_name(Words& words) {
  NamedCommand named;
  const auto take = [&](std::size_t at) {
    auto word = std::move(words[at]);
    words.erase(words.begin() + static_cast<std::ptrdiff_t>(at));
    return word;
  };
  auto at = first_word(words, 0, nullptr);
  if (at < words.size()) {
    named.name = take(at);
    // The second word of a group. Common options may stand between the two.
    at = first_word(words, at, nullptr);
    if (is_group(named.name) && at < words.size()) {
      named.name += " " + take(at);
    }
    named.command = find_command(named.name);
  }
  return named;
}

/// Command to run, as the command line contains it.
struct CommandWords {
  Words words{};
  bool follows_dashes = false;  ///< Whether it follows `--`.
};

/// Index of the `--` that ends the names; a later one belongs to the command. A `--` that is the
/// value of an option is skipped.
std::size_t find_dashes(const Words& words, const Command& command) {
  std::size_t at = 0;
  while (at < words.size() && words[at] != "--") {
    at += takes_next(&command, words[at]) ? 2 : 1;
  }
  return std::min(at, words.size());
}

/// Whether an option before this index takes the place of the names.
bool selects_by_option(const Words& words, std::size_t end) {
  return std::any_of(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(end),
                     [](const std::string& word) {
                       return word == "--path" || word.starts_with("--path=") ||
                              word == "--space" || word.starts_with("--space=");
                     });
}

/// Removes the command to run: after `--`; or, with one name, from the first word after the name
/// and its options, as in flock(1). CLI11 would parse its options. Leaves the words before it in
/// `words`.
CommandWords cut_command(Words& words, const Command& command) {
  // Removes the words from `begin` on, and returns them without the first `skipped` ones.
  const auto cut = [&](std::size_t begin, std::size_t skipped) {
    Words rest(words.begin() + static_cast<std::ptrdiff_t>(begin + skipped), words.end());
    words.resize(begin);
    return rest;
  };
  if (const auto dashes = find_dashes(words, command); dashes < words.size()) {
    return {.words = cut(dashes, 1), .follows_dashes = true};
  }
  const auto name = first_word(words, 0, &command);
  // After --path or --space there is no name, and the first word starts the command.
  const bool is_named = !selects_by_option(words, name);
  const auto start =
      is_named ? first_word(words, std::min(name + 1, words.size()), &command) : name;
  // `NAME -c TEXT`, as in flock(1).
  const bool is_last = start > 0 && start + 1 == words.size();
  if (is_last && (words[start - 1] == "-c" || words[start - 1] == "--command")) {
    return {.words = {"/bin/sh", "-c", cut(start - 1, 1).front()}};
  }
  return {.words = cut(start, 0)};
}

/// Output of CLI11. CLI11 fills it through callbacks during the parse.
struct ParsedOptions {
  bool asks_help = false;
  bool asks_version = false;
  bool has_dashes = false;  ///< Whether `--` announced a command to run.
  Arguments arguments{};
};

/// Registers an option under all its names. Values are kept as text under one key; each command
/// parses them, so that the error names the option.
void add_option(CLI::App& app, const Option& option, ParsedOptions& parsed) {
  const std::string key(key_of(option));
  const std::string names(option.names);
  const std::string help(option.help);
  if (option.value.empty()) {
    // A flag has an empty value: Arguments::has() only asks whether the key exists.
    app.add_flag_callback(names, [&parsed, key] { parsed.arguments.options[key] = ""; }, help);
    return;
  }
  auto* added = app.add_option_function<std::string>(
      names, [&parsed, key](const std::string& text) { parsed.arguments.options[key] = text; },
      help);
  added->type_name(std::string(option.value));
  if (!option.choices.empty()) {
    const auto choices = " " + std::string(option.choices) + " ";
    added->check([choices](const std::string& text) {
      return choices.find(" " + text + " ") != std::string::npos
                 ? std::string()
                 : "\"" + text + "\" is not one of" + choices;
    });
  }
}

/// Registers the options of the command table. Without a command, only those of all commands, for
/// `tenure --help` and `tenure --version`.
void describe(CLI::App& app, const Command* command, ParsedOptions& parsed) {
  // Removes the built-in flag of CLI11, which prints its own layout and exits.
  app.set_help_flag();
  app.add_flag("-h,--help", parsed.asks_help);
  app.add_flag("-V,--version", parsed.asks_version);
  for (const auto& option : common_options()) {
    add_option(app, option, parsed);
  }
  if (command == nullptr) {
    return;
  }
  for (const auto& option : command->options) {
    add_option(app, option, parsed);
  }
  if (command->words_max > 0) {
    // The minimum is checked later, because --help needs no arguments.
    app.add_option("words", parsed.arguments.words)
        ->expected(0, static_cast<int>(command->words_max));
  }
}

/// "; did you mean X?" for a mistyped word; empty if nothing is similar.
std::string did_you_mean(std::string_view word, const std::vector<std::string_view>& candidates) {
  const auto found = closest(word, candidates);
  return found.empty() ? "" : "; did you mean " + found + "?";
}

/// All commands and groups.
std::vector<std::string_view> command_names() {
  std::vector<std::string_view> names;
  for (const auto& command : commands()) {
    names.push_back(command.name);
    names.push_back(command.name.substr(0, command.name.find(' ')));
  }
  return names;
}

/// Text for the first unknown option of a command line; empty if all are known.
std::string unknown_option(const Words& words, const Command* command) {
  std::vector<std::string_view> known{"--help", "--version"};
  for (const auto* list : {&common_options(), command != nullptr ? &command->options : nullptr}) {
    for (std::size_t at = 0; list != nullptr && at < list->size(); ++at) {
      const auto names = names_of((*list)[at]);
      known.insert(known.end(), names.begin(), names.end());
    }
  }
  for (const auto& word : words) {
    const auto name = word.substr(0, word.find('='));
    if (name.starts_with("--") && std::ranges::find(known, name) == known.end()) {
      return "unknown option " + name + did_you_mean(name, known);
    }
  }
  return "";
}

/// Whether a command to run is missing. An empty one after `--` is always an error: a script with
/// `-- $COMMAND` and an empty variable must not hold the lock and run nothing.
bool lacks_command(const ParsedOptions& parsed, const Command& asked) {
  const auto& command = parsed.arguments.command;
  return command.empty() ? parsed.has_dashes || asked.runs == Runs::command_required
                         : command.front().empty();
}

/// Converts the parsed options to an invocation or a message.
std::variant<Invocation, ExitMessage> resolve(ParsedOptions parsed, const NamedCommand& named) {
  // --version and --help come before all errors below, because they need no valid command.
  if (parsed.asks_version) {
    return ExitMessage{.text = "tenure " TENURE_VERSION "\n"};
  }
  if (named.command == nullptr) {
    const bool is_known = named.name.empty() || is_group(named.name);
    return is_known
               ? ExitMessage{.code = parsed.asks_help ? ExitCode::done : ExitCode::usage,
                             .text = help_of_all(named.name)}
               : usage_error("unknown command \"" + named.name + "\"" +
                             did_you_mean(named.name, command_names()) + "\nsee tenure --help");
  }
  const auto& asked = *named.command;
  if (parsed.asks_help) {
    return ExitMessage{.text = help_of(asked)};
  }
  if (parsed.arguments.words.size() < asked.words_min) {
    return usage_error(std::string(asked.name) + " needs " + std::string(asked.synopsis) +
                       "\nsee tenure " + std::string(asked.name) + " --help");
  }
  if (lacks_command(parsed, asked)) {
    return usage_error("there is no command to run: tenure " + std::string(asked.name) + " " +
                       std::string(asked.synopsis) +
                       "\nto hold a lock without a command: tenure lock NAME");
  }
  return Invocation{.command = named.command, .arguments = std::move(parsed.arguments)};
}

}  // namespace

std::variant<Invocation, ExitMessage> read_command_line(Words words) {
  // First, because the options depend on the command.
  const auto named = take_name(words);
  CLI::App app("tenure: distributed locks on the command line", "tenure");
  ParsedOptions parsed;
  describe(app, named.command, parsed);
  if (named.command != nullptr && named.command->runs != Runs::nothing) {
    auto command = cut_command(words, *named.command);
    parsed.has_dashes = command.follows_dashes;
    parsed.arguments.command = std::move(command.words);
  }
  // After the command was cut off, so that CLI11 sees the options of tenure only.
  auto reversed = words;
  std::ranges::reverse(reversed);  // CLI11 expects the words in reverse order.
  try {
    app.parse(std::move(reversed));
  } catch (const CLI::ParseError& error) {
    // A wrong command explains unknown options, which may be its own.
    const bool is_unknown =
        named.command == nullptr && !is_group(named.name) && !named.name.empty();
    if (is_unknown) {
      return resolve({}, named);
    }
    const auto unknown = unknown_option(words, named.command);
    return usage_error((unknown.empty() ? std::string(error.what()) : unknown) + "\nsee tenure " +
                       (named.command != nullptr ? named.name + " " : "") + "--help");
  }
  return resolve(std::move(parsed), named);
}

}  // namespace tenure::cli
