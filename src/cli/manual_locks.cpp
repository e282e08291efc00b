#include "cli/commands.hpp"
#include "cli/manual_parts.hpp"

namespace tenure::cli {
namespace {

/// Limits::items_max of the services: the most names that one atomic request may have.
constexpr std::size_t names_max = 64;

/// Options of every command that acquires locks. The short ones are those of flock(1), so that
/// scripts can be converted by replacing the command.
const std::vector<Option>& acquire_options() {
  static const std::vector<Option> all{
      {"-s,--shared", "", "Acquire the lock in shared mode"},
      {"-x,-e,--exclusive", "", "Acquire the lock in exclusive mode; the default"},
      {"--mode", "MODE",
       "Lock mode: IS, IX, S, U, SIX or X; tenure:// only, except for S and X [X]",
       "IS IX S U SIX X"},
      {"--path", "PATH",
       "Instead of a name: the node a/b/c of a tree, with intention locks on a and a/b"},
      {"--space", "SPACE", "Instead of a name: the keys of this space that --range selects"},
      {"--range", "FROM..TO", "Keys from FROM, before TO; either may be empty [all keys]"},
      {"--barging", "",
       "redis:// only: lock the plain key of the name, without a queue, as other Redis clients do"},
      {"--capacity", "NUMBER", "Semaphore capacity: maximum number of holders on all machines"},
      {"--permits", "NUMBER", "Number of semaphore permits to acquire [1]"},
      {"-w,--wait", "DURATION", "Wait timeout: 500ms, 30s; a number without a unit is seconds"},
      {"-n,--no-wait", "", "Fail at once if another owner has the lock"},
      {"-E,--conflict-exit-code", "NUMBER", "Exit code if the lock is not acquired [75]"},
      {"--ttl", "DURATION",
       "Lease TTL: how long the lock outlives a crashed or disconnected holder [30s]"},
      {"--metadata", "TEXT", "Free text shown beside the holder [the command]"},
  };
  return all;
}

/// Options of `lock` and `try`, which need not hold the lock themselves.
std::vector<Option> hold_options() {
  auto all = acquire_options();
  all.push_back({"--lease", "LEASE",
                 "Acquire under this lease and exit; `tenure unlock --token` or the end of the "
                 "lease releases the lock"});
  return all;
}

/// Options of every command that runs a command under a lock.
const std::vector<Option>& end_options() {
  static const std::vector<Option> all{
      {"--at-most", "DURATION",
       "Longest run of the command: then SIGTERM, SIGKILL after --grace, and exit code 79"},
      {"--grace", "DURATION",
       "Time between SIGTERM and SIGKILL [after --at-most: 10s; before the end of the lease: a "
       "quarter of the TTL, at most half of it]"},
      {"--on-lost", "ACTION",
       "What the command gets before its lock is lost: term (SIGTERM, then SIGKILL), kill "
       "(SIGKILL), or ignore (nothing) [term]",
       "term kill ignore"},
  };
  return all;
}

/// Options of `run`: those above, and those of jobs that several machines start.
std::vector<Option> run_options() {
  auto all = acquire_options();
  all.push_back({"--at-least", "DURATION",
                 "Keep the lock for this time after the grant, also if the command ends earlier"});
  all.push_back({"--every", "DURATION",
                 "Start the command at most once per this time, on all machines together"});
  all.insert(all.end(), end_options().begin(), end_options().end());
  return all;
}

/// Options of `elect`: its own, and those acquire_options() that apply to an election, which is
/// always exclusive and uses the metadata for the value.
std::vector<Option> election_options() {
  std::vector<Option> all{
      {"--value", "TEXT", "Stand for election with this value, which other clients can read"},
      {"-l,--listen", "", "Print every change of leadership until Ctrl-C"},
  };
  for (const auto& option : acquire_options()) {
    if (option.names.find("--wait") != std::string_view::npos ||
        option.names.find("--no-wait") != std::string_view::npos ||
        option.names.find("--ttl") != std::string_view::npos ||
        option.names.find("-E") != std::string_view::npos) {
      all.push_back(option);
    }
  }
  all.insert(all.end(), end_options().begin(), end_options().end());
  return all;
}

}  // namespace

std::vector<Command> lock_commands() {
  return {
      {.name = "run",
       .synopsis = "NAME... -- COMMAND...",
       .summary = "Hold locks while a command runs",
       .description =
           "Waits until all locks are acquired, atomically, runs the command, and releases the "
           "locks. The exit code is that of the command.\n\n"
           "With one name, -- may be omitted: options may follow the name, and the next word "
           "starts the command. Several names, and a command that contains -- itself, need -- "
           "before the command. NAME -c TEXT runs TEXT in the shell. A missing or empty command "
           "is a usage error; `tenure lock` holds a lock without a command.\n\n"
           "--path, or --space with --range, takes the place of the names.\n\n"
           "With --capacity N the name is a semaphore with up to N holders. All users of the name "
           "must give the same capacity; otherwise the exit code is 64.\n\n"
           "The environment of the command contains TENURE_NAME (several names: one per line), "
           "TENURE_TOKEN (the fencing token, larger than that of every earlier holder), "
           "TENURE_LEASE_MS and TENURE_URL. The command runs in a process group of its own; "
           "SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1 and SIGUSR2 are forwarded to it. With "
           "--json, one line with token, waited_ms and exit_code follows the output of the "
           "command.\n\n"
           "If the lease cannot be renewed, the process group receives SIGTERM when less than "
           "three tenths of the TTL are left, and SIGKILL before the lease ends. So the command "
           "has ended when the next holder starts, even if this process is stopped or killed. "
           "After a forced release, the group receives SIGKILL at once. The exit code is then 79. "
           "--on-lost ignore lets the command continue without the lock.\n\n"
           "For a job that several machines start at the same time: with --at-least, the lock "
           "stays held after a short command, so that a machine whose clock is late does not run "
           "it again. With --every, the lock NAME/started records the last start; a start within "
           "that time ends with 75. The service keeps both for that time, also if this process "
           "dies. Both need a service that can change TTLs: tenure://, redis:// or redlock://.",
       .words_max = names_max,
       .word = Word::lock,
       .runs = Runs::command_required,
       .options = run_options(),
       .examples = {{"tenure run backup -- pg_dump shop", "one backup at a time"},
                    {"tenure run -n reports/nightly ./report.sh",
                     "like flock -n: exit code 75 if another one runs"},
                    {"tenure run a b --wait 30s -- ./move.sh", "both locks, or neither after 30 s"},
                    {"tenure run -n --at-least 4m reports ./report.sh",
                     "from cron on every machine, every 5 minutes: one of them runs it"},
                    {"tenure run -n --at-most 2h backup ./backup.sh",
                     "a job that hangs does not keep the lock"},
                    {"tenure run --capacity 3 encode -- ./encode.sh", "at most three at a time"}},
       .run = run},
      {.name = "lock",
       .synopsis = "NAME...",
       .summary = "Hold locks until Ctrl-C",
       .description =
           "Waits until all locks are acquired, prints their fencing token, and holds "
           "them until SIGINT, SIGTERM or SIGHUP. The exit code is 79 if they are lost.\n\n"
           "With --lease, acquires under a lease of `tenure lease grant` and exits: one "
           "step of a job acquires the lock and another one releases it.",
       .words_max = names_max,
       .word = Word::lock,
       .options = hold_options(),
       .examples = {{"tenure lock maintenance --metadata 'disk swap'", "until Ctrl-C"},
                    {"tenure lock deploy --lease $(tenure lease grant --ttl 1h) -o quiet",
                     "prints the token for `tenure unlock deploy --token`"},
                    {"tenure lock --path db/users/42 --mode S",
                     "IS on db and db/users, S on the row"},
                    {"tenure lock --space orders --range 100..200", "the keys from 100 up to 200"}},
       .run = lock},
      {.name = "try",
       .synopsis = "NAME...",
       .summary = "Hold locks until Ctrl-C if they are free; otherwise exit with 75",
       .description = "Same as `tenure lock --no-wait`.",
       .words_max = names_max,
       .word = Word::lock,
       .options = hold_options(),
       .run = try_lock},
      {.name = "wait",
       .synopsis = "NAME",
       .summary = "Wait until a lock is free, without acquiring it",
       .description = "Exit code 0 when the lock has no holder, 75 if it is held at the end of "
                      "--wait. Another "
                      "client may acquire it right after: use `tenure run` to exclude others.",
       .words_min = 1,
       .words_max = 1,
       .word = Word::lock,
       .options = {{"-w,--wait", "DURATION", "Longest wait [no limit]"},
                   {"-n,--no-wait", "", "Do not wait: only check"},
                   {"-E,--conflict-exit-code", "NUMBER",
                    "Exit code if the lock is still held [75]"}},
       .examples = {{"tenure wait migration --wait 5m && ./start.sh",
                     "start after the migration has ended"}},
       .run = wait_until_free},
      {.name = "elect",
       .synopsis = "NAME [-- COMMAND...]",
       .summary = "Stand for election, or show the leader",
       .description = "With --value, waits for the leadership and keeps it while the command runs, "
                      "or until Ctrl-C, as `tenure run` and `tenure lock` do. Without --value, "
                      "prints value, owner and fencing token of the leader; exit code 1 if there "
                      "is none.",
       .words_min = 1,
       .words_max = 1,
       .word = Word::lock,
       .runs = Runs::optional_command,
       .options = election_options(),
       .examples = {{"tenure elect scheduler --value $(hostname) -- ./scheduler",
                     "one scheduler at a time"},
                    {"tenure elect scheduler", "the current leader"}},
       .run = elect},
  };
}

}  // namespace tenure::cli
