#include "cli/commands.hpp"
#include "cli/manual_parts.hpp"

namespace tenure::cli {
namespace {

constexpr std::size_t names_max = 64;

const std::vector<Option>& acquiring_options() {
  static const std::vector<Option> all{
      {"-s,--shared", "", "Beside others who share it; nobody has it exclusively meanwhile"},
      {"-x,-e,--exclusive", "", "Alone. This is the default"},
      {"--capacity", "NUMBER", "Let so many hold it at a time, on all machines together"},
      {"--permits", "NUMBER", "How many of the capacity this one takes [1]"},
      {"-w,--wait", "DURATION", "Give up after so long: 500ms, 30s; a bare number is seconds"},
      {"-n,--no-wait", "", "Give up at once if somebody else has it"},
      {"-E,--conflict-exit-code", "NUMBER", "Exit code when somebody else has it [75]"},
      {"--ttl", "DURATION", "How long the lock outlives us if we are cut off [10s]"},
      {"--note", "TEXT", "What others read beside the holder [the command]"},
  };
  return all;
}

std::vector<Option> election_options() {
  std::vector<Option> all{
      {"--value", "TEXT", "Stand for election; this is what others read"},
      {"-l,--listen", "", "Print every change of leadership until Ctrl-C"},
  };
  for (const auto& option : acquiring_options()) {
    if (option.names.find("--wait") != std::string_view::npos ||
        option.names.find("--no-wait") != std::string_view::npos ||
        option.names.find("--ttl") != std::string_view::npos ||
        option.names.find("-E") != std::string_view::npos) {
      all.push_back(option);
    }
  }
  return all;
}

}  // namespace

std::vector<Command> lock_commands() {
  return {
      {.name = "run",
       .synopsis = "NAME... [-- COMMAND...]",
       .summary = "Hold locks while a command runs",
       .description =
           "Waits until the locks are ours, all at once or none, runs the command, and gives them "
           "back. The exit code is that of the command.\n\n"
           "With one name the -- may be left out: all that follows the name is the command. A "
           "command that has a -- itself needs one before it. NAME -c TEXT gives TEXT to the "
           "shell. Without a command it is `tenure lock`.\n\n"
           "With --capacity N the name is a semaphore: up to N hold it at a time. All who use the "
           "name say the same number, else it is 64.\n\n"
           "The command finds TENURE_NAME (several: one a line), TENURE_TOKEN, a number larger "
           "than that of every earlier holder, TENURE_LEASE_MS and TENURE_URL in its environment. "
           "It runs in a process group of its own; SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1 and "
           "SIGUSR2 are passed on to it.\n\n"
           "If the lease cannot be renewed, the group gets SIGTERM when less than three tenths of "
           "the ttl are left, and SIGKILL before it ends: nothing of it runs when the next one "
           "gets the lock, also if this process is stopped or killed. A lock that was taken away "
           "is answered by SIGKILL at once. The exit code is 79 then.",
       .words_min = 1,
       .words_max = names_max,
       .word = Word::lock,
       .takes_command = true,
       .options = acquiring_options(),
       .examples = {{"tenure run backup -- pg_dump shop", "never two backups at a time"},
                    {"tenure run -n reports/nightly ./report.sh",
                     "like flock -n: 75 if another one runs"},
                    {"tenure run a b --wait 30s -- ./move.sh", "both, or neither after 30 s"},
                    {"tenure run --capacity 3 encode -- ./encode.sh", "at most three at a time"}},
       .run = run},
      {.name = "lock",
       .synopsis = "NAME...",
       .summary = "Hold locks until Ctrl-C",
       .description = "Waits until the locks are ours, prints their fencing token, and holds them "
                      "until SIGINT, SIGTERM or SIGHUP. 79 if they are lost.",
       .words_min = 1,
       .words_max = names_max,
       .word = Word::lock,
       .options = acquiring_options(),
       .examples = {{"tenure lock maintenance --note 'disk swap'", "until Ctrl-C"}},
       .run = lock},
      {.name = "try",
       .synopsis = "NAME...",
       .summary = "Hold locks until Ctrl-C if they are free, else 75 at once",
       .description = "Like `tenure lock --no-wait`.",
       .words_min = 1,
       .words_max = names_max,
       .word = Word::lock,
       .options = acquiring_options(),
       .run = try_lock},
      {.name = "elect",
       .synopsis = "NAME [-- COMMAND...]",
       .summary = "Stand for election, or see who leads",
       .description = "With --value it waits until we lead, and leads for as long as the command "
                      "runs, or until Ctrl-C: as `tenure run` and `tenure lock` do. Without it "
                      "prints value, owner and token of the leader; 1 if nobody leads.",
       .words_min = 1,
       .words_max = 1,
       .word = Word::lock,
       .takes_command = true,
       .options = election_options(),
       .examples = {{"tenure elect scheduler --value $(hostname) -- ./scheduler",
                     "one scheduler at a time"},
                    {"tenure elect scheduler", "who it is"}},
       .run = elect},
  };
}

}  // namespace tenure::cli
