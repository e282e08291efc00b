#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

namespace tenure::cli {

class Arguments;

/// One option, as it is parsed, explained and completed.
struct Option {
  std::string_view names;      ///< "-n,--no-wait"; the last one is how the program asks for it.
  std::string_view value{};    ///< What follows it, e.g. DURATION; empty: nothing.
  std::string_view help{};     ///< One sentence.
  std::string_view choices{};  ///< "table json quiet": all that it takes; empty: anything.
};

struct Example {
  std::string_view line;
  std::string_view what;
};

/// What a word on the command line is, so that shells can complete it.
enum class Word : unsigned char { other, lock, command, shell, file };

/// One command: the source of the parser, of --help, of the manual pages and of the completions.
struct Command {
  std::string_view name;         ///< "run", "cluster add".
  std::string_view synopsis;     ///< Of its words: "NAME... [-- COMMAND...]".
  std::string_view summary;      ///< One line.
  std::string_view description;  ///< Paragraphs, parted by empty lines.
  std::size_t words_min = 0;
  std::size_t words_max = 0;
  Word word = Word::other;
  bool takes_command = false;  ///< What follows `--`, or the first word, is a command to run.
  std::vector<Option> options{};
  std::vector<Example> examples{};
  int (*run)(const Arguments& arguments) = nullptr;
};

/// All commands, in the order in which people read them.
[[nodiscard]] const std::vector<Command>& commands();
/// What every command takes.
[[nodiscard]] const std::vector<Option>& common_options();
/// What all have in common, for --help and tenure(1).
struct Remark {
  std::string_view title;
  std::string_view text;
};
[[nodiscard]] std::span<const Remark> remarks();
/// A command that starts with these words, such as "cluster"? For "cluster --help".
[[nodiscard]] std::string_view summary_of_group(std::string_view group);

/// How the program asks for an option: "--no-wait".
[[nodiscard]] std::string_view key_of(const Option& option);
/// Each of its names.
[[nodiscard]] std::vector<std::string_view> names_of(const Option& option);

}  // namespace tenure::cli
