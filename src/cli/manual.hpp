#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

namespace tenure::cli {

class Arguments;

/// Option of a command: source of the parser, the help and the completions.
struct Option {
  std::string_view names;      ///< "-n,--no-wait"; the last one is the key in Arguments::options.
  std::string_view value{};    ///< Placeholder of the value, such as DURATION; empty for a flag.
  std::string_view help{};     ///< Description.
  std::string_view choices{};  ///< Valid values, such as "table json quiet"; empty: any.
};

/// Example of a command line, and what it does.
struct Example {
  /// Command line, as typed into a shell.
  std::string_view line;
  std::string_view what;
};

/// Kind of a positional argument, for shell completion.
enum class Word : unsigned char { other, lock, command, shell, file };

/// Whether a command of the user is part of the command line, after `--` or after the first name.
enum class Runs : unsigned char { nothing, optional_command, command_required };

/// Command: source of the parser, --help, the manual pages and the completions.
struct Command {
  std::string_view name;         ///< "run", "cluster add".
  std::string_view synopsis;     ///< Positional arguments: "NAME... [-- COMMAND...]".
  std::string_view summary;      ///< One line.
  std::string_view description;  ///< Paragraphs, separated by empty lines.
  /// Minimum number of positional arguments.
  std::size_t words_min = 0;
  /// Maximum number of positional arguments; 0: none.
  std::size_t words_max = 0;
  Word word = Word::other;
  Runs runs = Runs::nothing;
  bool uses_server = true;  ///< Whether the context of the configuration file applies.
  std::vector<Option> options{};
  std::vector<Example> examples{};
  /// Implementation. Returns the exit code.
  int (*run)(const Arguments& arguments) = nullptr;
};

/// All commands, in the order of the documentation.
[[nodiscard]] const std::vector<Command>& commands();
/// Options of every command.
[[nodiscard]] const std::vector<Option>& common_options();
/// Sections about all commands, for --help and tenure(1).
struct HelpSection {
  std::string_view title;
  std::string_view text;
};
[[nodiscard]] std::span<const HelpSection> help_sections();
/// Summary of a command group such as "cluster"; empty if there is no such group.
[[nodiscard]] std::string_view summary_of_group(std::string_view group);

/// Key of an option in Arguments::options: "--no-wait".
[[nodiscard]] std::string_view key_of(const Option& option);
/// All names of an option.
[[nodiscard]] std::vector<std::string_view> names_of(const Option& option);

}  // namespace tenure::cli
