#include "cli/commands.hpp"
#include "cli/manual_parts.hpp"

namespace tenure::cli {
namespace {

// Options that several commands share. Locks and key spaces have separate names.
constexpr Option space_option{"--space", "", "The key space with this name, not the lock"};
constexpr Option yes_option{"-y,--yes", "", "Skip the confirmation"};
constexpr Option change_wait{"-w,--wait", "DURATION", "Timeout of the change [5m]"};

/// Commands that show locks, and the forced release.
std::vector<Command> inspect_commands() {
  return {
      {.name = "ls",
       .synopsis = "[PREFIX]",
       .summary = "List locks that are held or waited for",
       .description = "Sorted by name. In a pipe, prints tab-separated lines without a header; "
                      "--output quiet prints only the names.",
       .words_max = 1,
       .word = Word::lock,
       .options = {{"-l,--limit", "NUMBER", "Maximum number of locks to list"}},
       .examples = {{"tenure ls db/ --json | jq -r '.[].name'",
                     "the names of all locks below db/"}},
       .run = list_locks},
      {.name = "show",
       .synopsis = "NAME",
       .summary = "Show the holders of a lock and its wait queue",
       .description =
           "Prints owner, mode, fencing token, lease, time held and metadata of each "
           "holder, then the wait queue in order. The exit code is 0, also for a free lock. "
           "With --output quiet only the exit code shows the state: 0 held, 1 free.",
       .words_min = 1,
       .words_max = 1,
       .word = Word::lock,
       .options = {space_option},
       .run = show_lock},
      {.name = "explain",
       .synopsis = "NAME",
       .summary = "Explain why a lock is not granted: the chain of blockers",
       .description = "Follows the chain from the holder to the lock that the holder waits for, up "
                      "to eight locks, and reports a cycle.",
       .words_min = 1,
       .words_max = 1,
       .word = Word::lock,
       .options = {space_option},
       .run = explain_lock},
      {.name = "watch",
       .synopsis = "[PREFIX]",
       .summary = "Print events of locks as they occur",
       .description =
           "One event per line: revision, type, name, owner, token, metadata, and time= with the "
           "time of arrival; in order, without gaps or duplicates, until Ctrl-C. A terminal shows "
           "columns. Optional fields follow as user=, operator= and reason=: "
           "the authenticated user and, for `forced`, the operator (a user or a network address) "
           "and the reason.",
       .words_max = 1,
       .word = Word::lock,
       .options = {{"--exact", "", "Only the lock with exactly this name"},
                   {"--from", "REVISION", "First revision to print, if the server still has it"},
                   {"-c,--count", "NUMBER", "Exit after this number of events"}},
       .run = watch},
      {.name = "unlock",
       .synopsis = "NAME",
       .summary = "Release a lock by its token, or force the release",
       .description =
           "With --token or --lease, releases a hold that `tenure lock --lease` has acquired. "
           "Exit code 1 if it is not held.\n\n"
           "With --force, releases the lock of another owner. Asks for confirmation, unless --yes "
           "is given. The holder is notified and its "
           "fencing token is superseded, but it may still write while the next holder "
           "runs. The server logs the forced release; log and event contain your user "
           "name, or your network address if there are no users. Exit code 1 if the lock "
           "is free.",
       .words_min = 1,
       .words_max = 1,
       .word = Word::lock,
       .options =
           {{"-f,--force", "", "Release the lock of another owner"},
            {"--token", "TOKEN",
             "Release the hold with this fencing token; with --force, only if the holder has "
             "it"},
            {"--lease", "LEASE", "Release the hold under this lease"},
            {"--reason", "TEXT", "Reason for the server log and the event"},
            space_option,
            yes_option},
       .run = unlock},
  };
}

/// Commands that observe a service and save its state.
std::vector<Command> monitoring_commands() {
  return {
      {.name = "top",
       .synopsis = "[PREFIX]",
       .summary = "Live view of the most contended locks",
       .description =
           "Shows the locks with the longest queues, the locks that are held longest, the "
           "longest waits, expiring leases, rates, latencies and the leader. Refreshes "
           "every two seconds, at low cost to the server.\n\n"
           "Keys: w, t, h, r and n sort by waiters, longest wait, time held, grants per "
           "second and name; / filters; 1, 2, 3 and 0 show locks, waits, leases, or "
           "all; p pauses; + and - change the interval; ? is help; q quits.\n\n"
           "With --once or --json, or in a pipe, takes two samples and prints them.",
       .words_max = 1,
       .word = Word::lock,
       .options = {{"--once", "", "Print one report and exit"},
                   {"--interval", "DURATION", "Refresh interval [2s; with --once: 1s]"},
                   {"--sort", "KEY", "Sort key: waiters, wait, held, grants or name [waiters]",
                    "waiters wait held grants name"}},
       .examples = {{"tenure top db/", "the locks below db/"},
                    {"tenure top --json | jq '.locks[0]'", "the most contended lock"}},
       .run = top},
      {.name = "fence check",
       .synopsis = "NAME TOKEN",
       .summary = "Check whether a fencing token is that of the current holder",
       .description =
           "Prints held, superseded (there is a newer holder), ended (its hold has "
           "ended, and there is no newer holder) or never_given. Exit code 0 if held, "
           "else 1. The result may be outdated when it arrives: storage that must reject "
           "late writes needs a fence.",
       .words_min = 2,
       .words_max = 2,
       .word = Word::lock,
       .options = {space_option},
       .examples = {{"tenure fence check backup $TENURE_TOKEN || exit",
                     "in a job, before an irreversible step"}},
       .run = check_token},
      {.name = "snapshot save",
       .synopsis = "FILE",
       .summary = "Save the state of the server to a file",
       .description = "Saves all locks, leases, queues and events at one revision, with checksums, "
                      "without blocking the server. The file appears under its name when it is "
                      "complete, and is then verified. `tenured seed --from FILE` starts a new "
                      "cluster from it.",
       .words_min = 1,
       .words_max = 1,
       .word = Word::file,
       .options = {{"-f,--force", "", "Overwrite an existing file"},
                   {"--stale", "", "Read from any server, which may lag behind the leader"}},
       .examples = {{"tenure snapshot save tenure-$(date +%F).snapshot", "once a day, by cron"}},
       .run = save_snapshot},
      {.name = "snapshot inspect",
       .synopsis = "FILE",
       .summary = "Show the contents of a saved snapshot",
       .description =
           "Needs no server. Exit code 1 if the file is damaged, with the position of the damage.",
       .words_min = 1,
       .words_max = 1,
       .word = Word::file,
       .uses_server = false,
       .options = {{"--prefixes", "NUMBER", "Number of name prefixes to summarize [10]"}},
       .run = inspect_snapshot},
  };
}

/// Commands for leases without a client library, for example in shell scripts.
std::vector<Command> leases() {
  return {
      {.name = "lease ls",
       .synopsis = "",
       .summary = "List leases",
       .description = "Prints client, remaining time, and number of locks and waits of each lease.",
       .run = list_leases},
      {.name = "lease show",
       .synopsis = "LEASE",
       .summary = "Show a lease and its locks",
       .description = "Exit code 79 if it has ended.",
       .words_min = 1,
       .words_max = 1,
       .run = show_lease},
      {.name = "lease grant",
       .synopsis = "",
       .summary = "Grant a lease and print its id",
       .description =
           "It expires after its TTL unless it is renewed, for example by `tenure lease keep`.",
       .options = {{"--ttl", "DURATION", "Lease TTL [30s]"}},
       .run = grant_lease},
      {.name = "lease keep",
       .synopsis = "LEASE",
       .summary = "Renew a lease until Ctrl-C",
       .description = "Renews at each third of the TTL. Exit code 79 if the lease has ended.",
       .words_min = 1,
       .words_max = 1,
       .options = {{"--once", "", "Renew once and exit"}},
       .run = keep_lease},
      {.name = "lease revoke",
       .synopsis = "LEASE",
       .summary = "Revoke a lease and release its locks",
       .description =
           "Its locks are free at once, and its holder is notified. Exit code 79 if it has ended.",
       .words_min = 1,
       .words_max = 1,
       .run = revoke_lease},
  };
}

/// Commands that administer the members of a cluster.
std::vector<Command> members() {
  return {
      {.name = "cluster status",
       .synopsis = "",
       .summary = "Show the members of a cluster and their status",
       .description =
           "Prints the members according to the leader, with the status of each member. Without a "
           "leader, the list comes from any member that answers. "
           "Exit code 1 if a member is unreachable or there is no leader. CLUSTER VERSION is the "
           "version of the "
           "replicated formats that the member uses, NEWEST VERSION the newest one that "
           "its program supports.",
       .run = cluster_status},
      {.name = "cluster add",
       .synopsis = "MEMBER PEER_ADDRESS CLIENT_ADDRESS",
       .summary = "Add a member that is running with --join",
       .description = "Returns when the member is a voter. docs/how_to/run_a_cluster.md has "
                      "the whole procedure.",
       .words_min = 3,
       .words_max = 3,
       .options = {change_wait},
       .run = add_member},
      {.name = "cluster remove",
       .synopsis = "MEMBER",
       .summary = "Remove a member permanently",
       .description = "Asks for confirmation, unless --yes is given.",
       .words_min = 1,
       .words_max = 1,
       .options = {change_wait, yes_option},
       .run = remove_member},
      {.name = "cluster transfer",
       .synopsis = "[MEMBER]",
       .summary = "Transfer the leadership",
       .description = "To this member, or to the member with the most complete log.",
       .words_max = 1,
       .options = {change_wait},
       .run = transfer_leadership},
      {.name = "cluster reload",
       .synopsis = "",
       .summary = "Reload users and certificates",
       .description = "Every server in the URL reloads its users (tenured --auth-file) and its "
                      "certificates (--tls-cert, --peer-tls-cert), as on SIGHUP. New connections "
                      "use the new certificates; open connections stay. An invalid file changes "
                      "nothing. Requires admin permission on all names.",
       .run = reload_users},
      {.name = "users reload",
       .synopsis = "",
       .summary = "Same as cluster reload",
       .description =
           "Every server in the URL reloads its own file (tenured --auth-file). An invalid "
           "file changes nothing. Requires admin permission on all names.",
       .run = reload_users},
  };
}

}  // namespace

std::vector<Command> service_commands() {
  std::vector<Command> all;
  for (auto&& part : {inspect_commands(), leases(), monitoring_commands(), members()}) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

std::vector<Command> tool_commands() {
  return {
      {.name = "bench",
       .synopsis = "[URL...]",
       .summary = "Measure latency and throughput of locks",
       .description =
           "Closed-loop benchmark: each client sends its next request after the reply to the last "
           "one. Prints latency percentiles, throughput and a histogram for each URL, one after "
           "the other. Ctrl-C prints the results so far. Uses random names and releases all "
           "locks.\n\n"
           "mutex acquires and releases locks, without contention if there are as many names as "
           "clients. shared does so in shared mode. handover lets all clients wait for few names "
           "and measures the time from unlock() to the next grant. lease grants and revokes "
           "leases.",
       .words_max = 16,
       .options = {{"-m,--mode", "MODE", "Workload: mutex, shared, handover or lease [mutex]",
                    "mutex shared handover lease"},
                   {"-c,--clients", "NUMBER", "Number of concurrent clients [8]"},
                   {"-n,--names", "NUMBER",
                    "Number of distinct lock names [as many as clients; handover: 1]"},
                   {"-t,--time", "DURATION", "Duration [5s]"},
                   {"--count", "NUMBER", "Total operations of all clients [no limit]"},
                   {"--connections", "NUMBER", "Number of connections, shared by the clients [1]"},
                   {"--ttl", "DURATION", "Lease TTL [30s]"}},
       .examples = {{"tenure bench", "the server of TENURE_URL"},
                    {"tenure bench -m handover -c 16 tenure://a redis://b",
                     "compare two services"}},
       .run = bench},
      {.name = "doctor",
       .synopsis = "",
       .summary = "Diagnose connection, server and clocks",
       .description =
           "Checks the URL, TLS, each server, versions, disks and the rate of the clock of the "
           "leader, and acquires and releases a lock. For Redis, etcd and ZooKeeper: version, "
           "eviction, persistence, replication, clock and permissions, as far as the server "
           "reports them without TLS. Prints advice for each problem. A check that is not possible "
           "is shown as skipped, with the reason. Exit code 1 if a check fails.",
       .run = doctor},
      {.name = "completion",
       .synopsis = "bash|zsh|fish",
       .summary = "Print a shell completion script",
       .description = "`make install` installs the scripts.",
       .words_min = 1,
       .words_max = 1,
       .word = Word::shell,
       .uses_server = false,
       .examples = {{"source <(tenure completion bash)", "for this shell"}},
       .run = print_completion},
      {.name = "man",
       .synopsis = "[COMMAND]",
       .summary = "Print a manual page",
       .description = "`make install` installs the pages.",
       .words_max = 2,
       .word = Word::command,
       .uses_server = false,
       .options = {{"--list", "", "List all pages and their commands"}},
       .examples = {{"tenure man run | man -l -", "tenure-run(1)"}},
       .run = print_man_page},
      {.name = "help",
       .synopsis = "[COMMAND]",
       .summary = "Print help",
       .description = "Same as --help.",
       .words_max = 2,
       .word = Word::command,
       .uses_server = false,
       .run = print_help},
      {.name = "version",
       .synopsis = "",
       .summary = "Print the version",
       .description = "Same as --version.",
       .uses_server = false,
       .run = print_version},
  };
}

}  // namespace tenure::cli
