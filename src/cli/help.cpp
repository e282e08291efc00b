#include "cli/help.hpp"

#include <algorithm>
#include <vector>

#include "cli/commands.hpp"
#include "cli/output.hpp"
#include "sys/json_writer.hpp"

namespace tenure::cli {
namespace {

/// Column of the descriptions. Longer terms have their description on the next lines.
constexpr std::size_t help_column = 32;

/// A term, and what it means beside or below it.
std::string entry(std::string term, std::string_view meaning) {
  auto text = wrapped(meaning, help_column);
  term.insert(0, 2, ' ');
  if (term.size() + 2 > help_column) {
    return term + '\n' + text;
  }
  // The text is indented by help_column spaces, so the term takes the place of the first of them.
  text.replace(0, term.size(), term);
  return text;
}

std::string options_text(std::string_view title, const std::vector<Option>& options) {
  std::string text = "\n" + std::string(title) + ":\n";
  for (const auto& option : options) {
    text += entry(spelled(option), option.help);
  }
  return text;
}

}  // namespace

std::string spelled(const Option& option) {
  std::string text;
  for (const auto name : names_of(option)) {
    text += (text.empty() ? "" : ", ") + std::string(name);
  }
  return option.value.empty() ? text : text + " " + std::string(option.value);
}

std::string wrapped(std::string_view text, std::size_t indent, std::size_t columns) {
  std::string out;
  std::string line;
  // An empty line stays empty: trailing spaces would be visible in a diff of the output.
  const auto finish = [&] {
    out += line.empty() ? "\n" : std::string(indent, ' ') + line + "\n";
    line.clear();
  };
  while (!text.empty()) {
    const auto end = std::min(text.find_first_of(" \n"), text.size());
    const auto word = text.substr(0, end);
    if (!line.empty() && indent + line.size() + 1 + word.size() > columns) {
      finish();
    }
    // An empty word comes from two separators in a row, such as the newlines between paragraphs.
    line += (line.empty() || word.empty() ? "" : " ") + std::string(word);
    if (end < text.size() && text[end] == '\n') {
      finish();
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  if (!line.empty()) {
    finish();
  }
  return out;
}

std::string help_of_all(std::string_view group) {
  // With the space, so that the group "lease" does not match a command "leases".
  const auto whole = group.empty() ? std::string() : std::string(group) + " ";
  std::string text = group.empty() ? "tenure: locks from the command line\n"
                                   : std::string(summary_of_group(group)) + "\n";
  text += "\nUsage: tenure " + whole + "COMMAND [OPTIONS]\n\nCommands:\n";
  for (const auto& command : commands()) {
    if (command.name.starts_with(whole)) {
      text += entry(std::string(command.name), command.summary);
    }
  }
  text += options_text("Options of all commands", common_options());
  text += entry("-h, --help", "Print this, or with a command what it does, and exit");
  text += entry("-V, --version", "Print the version and exit");
  if (group.empty()) {
    for (const auto& [title, remark] : help_sections()) {
      text += "\n" + std::string(title) + ":\n" + std::string(remark);
    }
  }
  return text;
}

std::string help_of(const Command& command) {
  std::string text = std::string(command.summary) + "\n\nUsage: tenure " +
                     std::string(command.name) + " [OPTIONS]";
  text += (command.synopsis.empty() ? "" : " ") + std::string(command.synopsis) + "\n\n";
  // The same texts as in the manual page, without its markup.
  text += wrapped(command.description, 0);
  if (!command.options.empty()) {
    text += options_text("Options", command.options);
  }
  text += options_text("Options of all commands", common_options());
  if (!command.examples.empty()) {
    text += "\nExamples:\n";
    for (const auto& [line, what] : command.examples) {
      text += "  " + std::string(line) + "\n      " + std::string(what) + "\n";
    }
  }
  return text;
}

int print_help(const Arguments& arguments) {
  std::string name;
  for (const auto& word : arguments.words) {
    name += (name.empty() ? "" : " ") + word;
  }
  const auto command = std::ranges::find(commands(), name, &Command::name);
  if (command != commands().end()) {
    print(help_of(*command));
    return code(ExitCode::done);
  }
  // A group, or nothing: the list of commands.
  if (name.empty() || !summary_of_group(name).empty()) {
    print(help_of_all(name));
    return code(ExitCode::done);
  }
  return failed({Errc::invalid_argument, "unknown command \"" + name + "\""});
}

int print_version(const Arguments& arguments) {
  sys::JsonWriter json;
  json.begin_object().field("version", std::string_view(TENURE_VERSION)).end_object();
  print((format_of(arguments) == Format::json ? json.text() : "tenure " TENURE_VERSION) + "\n");
  return code(ExitCode::done);
}

}  // namespace tenure::cli
