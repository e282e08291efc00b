// tenure completion: generates shell completion scripts from the command table.

#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "cli/commands.hpp"
#include "cli/manual.hpp"
#include "cli/output.hpp"

namespace tenure::cli {
namespace {

/// Completions after these words: commands, or the subcommands of a group.
std::set<std::string> subcommands(std::string_view group) {
  std::set<std::string> found;
  const auto whole = group.empty() ? std::string() : std::string(group) + " ";
  for (const auto& command : commands()) {
    if (command.name.starts_with(whole)) {
      const auto rest = command.name.substr(whole.size());
      found.emplace(rest.substr(0, rest.find(' ')));
    }
  }
  return found;
}

/// First words of commands that have two words.
std::set<std::string> groups() {
  std::set<std::string> found;
  for (const auto& command : commands()) {
    if (const auto space = command.name.find(' '); space != std::string_view::npos) {
      found.emplace(command.name.substr(0, space));
    }
  }
  return found;
}

/// List of words as the shells expect it.
std::string spaced(const std::set<std::string>& words) {
  std::string text;
  for (const auto& word : words) {
    text += (text.empty() ? "" : " ") + word;
  }
  return text;
}

/// All names of all options of a command.
std::string option_words(const Command& command) {
  std::string text = "-h --help";
  for (const auto* list : {&command.options, &common_options()}) {
    for (const auto& option : *list) {
      for (const auto name : names_of(option)) {
        text += " " + std::string(name);
      }
    }
  }
  return text;
}

/// Case branches `command) options='...' ;;`. One branch for each command, which sets the variable
/// that the script completes from.
std::string option_cases() {
  std::string text;
  for (const auto& command : commands()) {
    text += "    '" + std::string(command.name) + "') options='" + option_words(command) + "' ;;\n";
  }
  return text;
}

/// Case pattern of the commands whose arguments are of this kind: 'run'|'lock'.
std::string commands_with(Word word) {
  std::string text;
  for (const auto& command : commands()) {
    if (command.word == word) {
      text += (text.empty() ? "'" : "|'") + std::string(command.name) + "'";
    }
  }
  return text;
}

/// Replaces each occurrence; does not search the inserted text again.
std::string replaced(std::string text, std::string_view mark, const std::string& with) {
  for (auto at = text.find(mark); at != std::string::npos; at = text.find(mark, at + with.size())) {
    text.replace(at, mark.size(), with);
  }
  return text;
}

// The scripts contain the tables of commands and options as text, so that a completion needs no
// server. Only the names of locks do: `tenure ls`, limited to 200 names and one second, and silent
// on errors, because it runs at each press of the Tab key.
//
// After `--` the completion of the command that follows takes over.
constexpr auto bash_script = R"(# bash completion of tenure: source it, or put it into
# /usr/share/bash-completion/completions/tenure
_tenure_words() { mapfile -t COMPREPLY < <(compgen -W "$1" -- "$cur"); }
_tenure() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} command= word options=
  local -a names=()
  local at
  for ((at = 1; at < COMP_CWORD; at++)); do
    word=${COMP_WORDS[at]}
    if [[ $word == -- ]]; then
      COMPREPLY=()
      _command_offset $((at + 1)) 2>/dev/null || mapfile -t COMPREPLY < <(compgen -c -- "$cur")
      return
    fi
    [[ $word == -* ]] && continue
    names+=("$word")
  done
  command=${names[0]-}
  case $command in
    @GROUPS@) ((${#names[@]} > 1)) && command+=" ${names[1]}" ;;
  esac
  case $command:$prev in
@CHOICES@  esac
  case $command in
@CASES@  esac
  if [[ $cur == -* ]]; then
    _tenure_words "${options:--h --help -V --version}"
    return
  fi
  case $command in
    '') _tenure_words '@COMMANDS@' ;;
@GROUP_CASES@    'completion') _tenure_words 'bash zsh fish' ;;
    'man'|'help') _tenure_words '@COMMANDS@' ;;
    @FILES@) compopt -o default 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
    @LOCKS@)
      mapfile -t COMPREPLY < <(tenure ls -o quiet --limit 200 --timeout 1s "$cur" 2>/dev/null) ;;
  esac
}
complete -F _tenure tenure
)";

constexpr auto zsh_script = R"zsh(#compdef tenure
# zsh completion of tenure: put it as _tenure into a folder of $fpath
_tenure() {
  local command= options= at
  local -a names
  for ((at = 2; at < CURRENT; at++)); do
    if [[ ${words[at]} == -- ]]; then
      words=("${(@)words[at+1,-1]}")
      ((CURRENT -= at))
      _normal
      return
    fi
    [[ ${words[at]} == -* ]] || names+=("${words[at]}")
  done
  command=${names[1]-}
  case $command in
    @GROUPS@) ((${#names} > 1)) && command+=" ${names[2]}" ;;
  esac
  case $command:${words[CURRENT-1]} in
@CHOICES@  esac
  case $command in
@CASES@  esac
  if [[ $PREFIX == -* ]]; then
    compadd -- ${=options:--h --help -V --version}
    return
  fi
  case $command in
    '') compadd -- @COMMANDS@ ;;
@GROUP_CASES@    'completion') compadd -- bash zsh fish ;;
    'man'|'help') compadd -- @COMMANDS@ ;;
    @FILES@) _files ;;
    @LOCKS@)
      compadd -- ${(f)"$(tenure ls -o quiet --limit 200 --timeout 1s "$PREFIX" 2>/dev/null)"} ;;
  esac
}
_tenure "$@"
)zsh";

/// Case branches `'bench:-m'|'bench:--mode') …; return ;;` for options with a fixed set of values.
/// Commands give the same option different values.
std::string choice_cases(const std::string& add) {
  std::set<std::string> cases;
  const auto note = [&](const std::string& command, const std::vector<Option>& options) {
    for (const auto& option : options) {
      std::string names;
      for (const auto name : names_of(option)) {
        names += (names.empty() ? "" : "|") + command + ":" + std::string(name);
      }
      if (!option.choices.empty()) {
        cases.insert("    " + names + ") " + replaced(add, "@", std::string(option.choices)) +
                     "; return ;;\n");
      }
    }
  };
  // Common options begin with `*`, any command; the patterns of different options never overlap.
  note("*", common_options());
  for (const auto& command : commands()) {
    note("'" + std::string(command.name) + "'", command.options);
  }
  std::string text;
  for (const auto& line : cases) {
    text += line;
  }
  return text;
}

/// Fills the placeholders of a script. `add`: shell code that adds words. Used for bash and zsh,
/// whose syntax differs only in `add` and in the frame of the script.
std::string filled(std::string_view script, const std::string& add) {
  std::string group_cases;
  std::string group_names;
  for (const auto& group : groups()) {
    const auto second = spaced(subcommands(group));
    group_cases += "    '" + group + "') " + replaced(add, "@", second) + " ;;\n";
    group_names += (group_names.empty() ? "" : "|") + group;
  }
  auto text = replaced(std::string(script), "@GROUPS@", group_names);
  text = replaced(std::move(text), "@GROUP_CASES@", group_cases);
  text = replaced(std::move(text), "@CASES@", option_cases());
  text = replaced(std::move(text), "@CHOICES@", choice_cases(add));
  text = replaced(std::move(text), "@COMMANDS@", spaced(subcommands("")));
  text = replaced(std::move(text), "@FILES@", commands_with(Word::file));
  return replaced(std::move(text), "@LOCKS@", commands_with(Word::lock));
}

/// Quotes for fish. Only the quote and the backslash are special between single quotes.
std::string quoted(std::string_view text) {
  std::string out = "'";
  for (const char byte : text) {
    out += byte == '\'' || byte == '\\' ? std::string("\\") + byte : std::string(1, byte);
  }
  return out + "'";
}

/// One `complete` line. -x: the option takes a value and no file name.
std::string fish_option(const std::string& condition, const Option& option) {
  auto text = "complete -c tenure" + condition;
  for (const auto name : names_of(option)) {
    text += name.starts_with("--") ? " -l " + std::string(name.substr(2))
                                   : " -s " + std::string(name.substr(1));
  }
  text += option.value.empty() ? "" : " -x";
  text += option.choices.empty() ? "" : " -a " + quoted(option.choices);
  return text + " -d " + quoted(option.help) + "\n";
}

/// fish needs one line for each command and option, with a condition that selects the command.
std::string fish_completion() {
  std::string text =
      "# fish completion of tenure: save as ~/.config/fish/completions/tenure.fish\n"
      "complete -c tenure -f\n";
  for (const auto& option : common_options()) {
    text += fish_option("", option);
  }
  std::set<std::string> printed;
  for (const auto& command : commands()) {
    const auto space = command.name.find(' ');
    const std::string first(command.name.substr(0, space));
    // The first word once, also if it is a group of several commands.
    if (printed.insert(first).second) {
      const auto help = space == std::string_view::npos ? command.summary : summary_of_group(first);
      text +=
          "complete -c tenure -n __fish_use_subcommand -a " + first + " -d " + quoted(help) + "\n";
    }
    // Not closed yet: the second word of a group is added below.
    auto condition = " -n '__fish_seen_subcommand_from " + first;
    if (space != std::string_view::npos) {
      const std::string second(command.name.substr(space + 1));
      text += "complete -c tenure" + condition + "; and not __fish_seen_subcommand_from " +
              spaced(subcommands(first)) + "' -a " + second + " -d " + quoted(command.summary) +
              "\n";
      condition += "; and __fish_seen_subcommand_from " + second;
    }
    condition += "'";
    for (const auto& option : command.options) {
      text += fish_option(condition, option);
    }
    if (command.word == Word::lock) {
      text += "complete -c tenure" + condition +
              " -a '(tenure ls --output quiet --limit 200 --timeout 1s 2>/dev/null)'\n";
    }
    if (command.word == Word::file) {
      text += "complete -c tenure" + condition + " -F\n";
    }
    if (command.word == Word::shell) {
      text += "complete -c tenure" + condition + " -a 'bash zsh fish'\n";
    }
  }
  return text;
}

}  // namespace

int print_completion(const Arguments& arguments) {
  const auto& shell = arguments.words.front();
  // Checked here, because positional arguments have no choices in the command table.
  if (shell != "bash" && shell != "zsh" && shell != "fish") {
    return failed({Errc::invalid_argument, "supported shells: bash, zsh, fish"});
  }
  print(shell == "bash"  ? filled(bash_script, "_tenure_words '@'")
        : shell == "zsh" ? filled(zsh_script, "compadd -- @")
                         : fish_completion());
  return code(ExitCode::done);
}

}  // namespace tenure::cli
