// tenure man: generates the manual pages from the command table. The build installs them.

#include "sys/man_page.hpp"

#include <algorithm>
#include <string>
#include <string_view>

#include "cli/commands.hpp"
#include "cli/help.hpp"
#include "cli/manual.hpp"
#include "cli/output.hpp"

namespace tenure::cli {
namespace {

/// Footer of the pages.
constexpr auto source = "tenure " TENURE_VERSION;

/// Adds a section that lists options.
void write(const std::vector<Option>& options, std::string_view title, sys::ManPage& page) {
  page.section(title);
  for (const auto& option : options) {
    page.term(spelled(option), option.help);
  }
}

/// Name of the page of a command: "tenure-cluster-add".
std::string hyphenated(std::string_view name) {
  std::string text = "tenure-" + std::string(name);
  std::ranges::replace(text, ' ', '-');
  return text;
}

/// Page of one command, in section 1.
std::string page_of(const Command& command) {
  const auto name = hyphenated(command.name);
  sys::ManPage page({.name = name, .source = source, .summary = command.summary});
  page.section("synopsis")
      .synopsis("tenure " + std::string(command.name), "[OPTIONS] " + std::string(command.synopsis))
      .section("description")
      .paragraphs(command.description);
  if (!command.options.empty()) {
    write(command.options, "options", page);
  }
  write(common_options(), "options of all commands", page);
  if (!command.examples.empty()) {
    page.section("examples");
    for (const auto& [line, what] : command.examples) {
      page.term(line, what);
    }
  }
  return page.see_also("tenure", 1).text();
}

/// tenure(1): the list of commands, the common options and the sections about all commands.
std::string page_of_all() {
  sys::ManPage page({.name = "tenure", .source = source, .summary = "locks from the command line"});
  page.section("synopsis")
      .synopsis("tenure", "COMMAND [OPTIONS]")
      .section("description")
      .paragraphs(
          "Acquires, inspects and administers named locks that processes on many machines "
          "share.")
      .section("commands");
  for (const auto& command : commands()) {
    page.page_term(hyphenated(command.name), 1, command.summary);
  }
  write(common_options(), "options", page);
  for (const auto& [title, remark] : help_sections()) {
    page.section(title).verbatim(remark);
  }
  return page.see_also("tenured", 8).see_also("libtenure", 3).text();
}

}  // namespace

int print_man_page(const Arguments& arguments) {
  std::string name;
  for (const auto& word : arguments.words) {
    name += (name.empty() ? "" : " ") + word;
  }
  // For the build, which generates and installs one file for each line.
  if (arguments.has("--list")) {
    print("tenure\n");
    for (const auto& command : commands()) {
      print(hyphenated(command.name) + " " + std::string(command.name) + "\n");
    }
    return code(ExitCode::done);
  }
  if (name.empty()) {
    print(page_of_all());
    return code(ExitCode::done);
  }
  // The words were joined above, so "cluster add" may be given as two arguments.
  const auto it = std::ranges::find(commands(), name, &Command::name);
  if (it == commands().end()) {
    return failed({Errc::invalid_argument, "unknown command " + plain(name)});
  }
  print(page_of(*it));
  return code(ExitCode::done);
}

}  // namespace tenure::cli
