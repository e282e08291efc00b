#include "cli/commands.hpp"
#include "cli/manual_parts.hpp"

namespace tenure::cli {
namespace {

constexpr Option space_option{"--space", "", "The space of keys of that name, not the lock"};
constexpr Option yes_option{"-y,--yes", "", "Do not ask"};
constexpr Option change_wait{"-w,--wait", "DURATION", "Longest wait for the change [5m]"};

std::vector<Command> looking() {
  return {
      {.name = "ls",
       .synopsis = "[PREFIX]",
       .summary = "List locks that somebody holds or waits for",
       .description = "By name. In a pipe: one a line, with tabs in between and no headline; "
                      "--output quiet prints names alone.",
       .words_max = 1,
       .word = Word::lock,
       .options = {{"-l,--limit", "NUMBER", "At most so many"}},
       .examples = {{"tenure ls db/ --json | jq -r '.[].name'", "the names below db/"}},
       .run = list_locks},
      {.name = "show",
       .synopsis = "NAME",
       .summary = "Show who holds a lock and who waits for it",
       .description = "Holder, claim, fencing token, lease, since when and the note; then the "
                      "queue in its order. With --output quiet the exit code says it: 0 held, 1 "
                      "free.",
       .words_min = 1,
       .words_max = 1,
       .word = Word::lock,
       .options = {space_option},
       .run = show_lock},
      {.name = "explain",
       .synopsis = "NAME",
       .summary = "Say why a lock is held: who waits for whom",
       .description = "Follows what the holder itself waits for, and what that one's holder does, "
                      "up to eight locks; says so if that is a cycle.",
       .words_min = 1,
       .words_max = 1,
       .word = Word::lock,
       .options = {space_option},
       .run = explain_lock},
      {.name = "watch",
       .synopsis = "[PREFIX]",
       .summary = "Print what happens to locks, as it happens",
       .description =
           "One event a line: revision, what, name, owner, token, note. In order, "
           "without gap or duplicate; ends by Ctrl-C. Behind them follow user=, operator= "
           "and reason= where they are known: the authenticated user, and with `forced` "
           "the operator (a user, or a network address) and the reason given.",
       .words_max = 1,
       .word = Word::lock,
       .options = {{"--exact", "", "Only the lock of exactly this name"},
                   {"--from", "REVISION", "Begin with this one, if the server still has it"},
                   {"-c,--count", "NUMBER", "End after so many"}},
       .run = watch},
      {.name = "unlock",
       .synopsis = "NAME",
       .summary = "Take a lock away from its holder",
       .description = "Asks before it does, unless --yes. The holder is told, and its token is "
                      "older than all that follow; but what it does from now on may meet the next "
                      "holder. The server logs the forced release and puts your user name, or your "
                      "network address where there are no users, into the event. 1 if it is free.",
       .words_min = 1,
       .words_max = 1,
       .word = Word::lock,
       .options = {{"-f,--force", "", "Needed: it is somebody else's"},
                   {"--token", "TOKEN", "Only from the holder with this token"},
                   {"--reason", "TEXT", "Why, for the log of the server and the event"},
                   space_option,
                   yes_option},
       .run = unlock},
  };
}

std::vector<Command> overseeing() {
  return {
      {.name = "top",
       .synopsis = "[PREFIX]",
       .summary = "Watch which locks are most in demand",
       .description = "Locks with the longest queues and those held longest, the longest waits, "
                      "their leases, rates and latencies, and who leads; asked for anew every two "
                      "seconds, at little cost to the server.\n\n"
                      "Keys: w, t, h, r and n sort by waiters, longest wait, time held, grants a "
                      "second and name; / filters; 1, 2, 3 and 0 show locks, waits, leases, or "
                      "all; p pauses; + and - change how often it asks; ? is help; q quits.\n\n"
                      "With --once or --json, or in a pipe, it looks twice and prints what it saw.",
       .words_max = 1,
       .word = Word::lock,
       .options = {{"--once", "", "Print what there is, and exit"},
                   {"--interval", "DURATION", "How often to ask [2s; between two looks: 1s]"},
                   {"--sort", "KEY", "waiters, wait, held, grants or name [waiters]",
                    "waiters wait held grants name"}},
       .examples = {{"tenure top db/", "what happens below db/"},
                    {"tenure top --json | jq '.locks[0]'", "the lock most in demand"}},
       .run = top},
      {.name = "fence check",
       .synopsis = "NAME TOKEN",
       .summary = "Say whether a fencing token still holds its lock",
       .description = "Prints held, superseded (somebody has it by a newer token), ended (nobody "
                      "has) or never_given. 0 if it is held, else 1. What the answer is worth is "
                      "over when it arrives: storage that must refuse late writers needs a fence "
                      "of its own.",
       .words_min = 2,
       .words_max = 2,
       .word = Word::lock,
       .options = {space_option},
       .examples = {{"tenure fence check backup $TENURE_TOKEN || exit",
                     "in a job, before it does what cannot be undone"}},
       .run = check_token},
      {.name = "snapshot save",
       .synopsis = "FILE",
       .summary = "Save the whole state of the server to a file",
       .description = "All locks, leases, queues and events of one moment, with checksums; the "
                      "server goes on meanwhile. The file appears under its name when it is whole, "
                      "and is read once before this ends. `tenured seed --from FILE` begins a new "
                      "cluster with it.",
       .words_min = 1,
       .words_max = 1,
       .word = Word::file,
       .options = {{"-f,--force", "", "Write over a file that is there"},
                   {"--stale", "", "What the first server that answers has, leader or not"}},
       .examples = {{"tenure snapshot save tenure-$(date +%F).snapshot", "once a day, by cron"}},
       .run = save_snapshot},
      {.name = "snapshot inspect",
       .synopsis = "FILE",
       .summary = "Say what is in a saved snapshot",
       .description = "Needs no server. 1 if the file is damaged, and which bytes of it are.",
       .words_min = 1,
       .words_max = 1,
       .word = Word::file,
       .options = {{"--prefixes", "NUMBER", "So many beginnings of names [10]"}},
       .run = inspect_snapshot},
  };
}

std::vector<Command> leases() {
  return {
      {.name = "lease ls",
       .synopsis = "",
       .summary = "List leases",
       .description = "Their clients, what is left of them, and how many locks and waits hang on "
                      "them.",
       .run = list_leases},
      {.name = "lease show",
       .synopsis = "LEASE",
       .summary = "Show a lease and what hangs on it",
       .description = "79 if it has ended.",
       .words_min = 1,
       .words_max = 1,
       .run = show_lease},
      {.name = "lease grant",
       .synopsis = "",
       .summary = "Begin a lease and print its number",
       .description =
           "It ends after its ttl unless `tenure lease keep` or somebody else renews it.",
       .options = {{"--ttl", "DURATION", "How long it lives [30s]"}},
       .run = grant_lease},
      {.name = "lease keep",
       .synopsis = "LEASE",
       .summary = "Renew a lease until Ctrl-C",
       .description = "At a third of its ttl. 79 if it has ended.",
       .words_min = 1,
       .words_max = 1,
       .options = {{"--once", "", "Renew it once"}},
       .run = keep_lease},
      {.name = "lease revoke",
       .synopsis = "LEASE",
       .summary = "End a lease and all that hangs on it",
       .description = "Its locks are free at once; its holder is told. 79 if it has ended already.",
       .words_min = 1,
       .words_max = 1,
       .run = revoke_lease},
  };
}

std::vector<Command> members() {
  return {
      {.name = "cluster status",
       .synopsis = "",
       .summary = "Show the members of a cluster and how they are",
       .description = "As the leader has them, and what each says itself. 1 if one does not "
                      "answer. CLUSTER VERSION is the version of the replicated formats that the "
                      "member uses, NEWEST VERSION the newest one that its program supports.",
       .run = cluster_status},
      {.name = "cluster add",
       .synopsis = "MEMBER PEER_ADDRESS CLIENT_ADDRESS",
       .summary = "Take in a member, which runs already with --join",
       .description = "Returns when the member is a voter. docs/how_to/run_a_cluster.md has "
                      "the whole procedure.",
       .words_min = 3,
       .words_max = 3,
       .options = {change_wait},
       .run = add_member},
      {.name = "cluster remove",
       .synopsis = "MEMBER",
       .summary = "Remove a member for good",
       .description = "Asks before it does, unless --yes.",
       .words_min = 1,
       .words_max = 1,
       .options = {change_wait, yes_option},
       .run = remove_member},
      {.name = "cluster transfer",
       .synopsis = "[MEMBER]",
       .summary = "Hand the leadership over",
       .description = "To this member, or to the one that has most of the log.",
       .words_max = 1,
       .options = {change_wait},
       .run = transfer_leadership},
      {.name = "cluster reload",
       .synopsis = "",
       .summary = "Reload users and certificates",
       .description = "Every server in the URL reads its file of users (tenured --auth-file) and "
                      "its certificates (--tls-cert, --peer-tls-cert) again, as at SIGHUP. New "
                      "connections use the new certificates; open connections stay. A wrong file "
                      "changes nothing. For admins of everything.",
       .run = reload_users},
      {.name = "users reload",
       .synopsis = "",
       .summary = "The same as cluster reload",
       .description = "By every server in the URL, each of which has a file of its own "
                      "(tenured --auth-file). A file with a mistake changes nothing: the rights of "
                      "before stay. For admins of everything.",
       .run = reload_users},
  };
}

}  // namespace

std::vector<Command> service_commands() {
  std::vector<Command> all;
  for (auto&& part : {looking(), leases(), overseeing(), members()}) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

std::vector<Command> tool_commands() {
  return {
      {.name = "bench",
       .synopsis = "[URL...]",
       .summary = "Measure how quick the locks behind a URL are",
       .description =
           "Clients in a closed loop: each asks again when it has its answer. Prints percentiles "
           "of the latency, how many a second, and a histogram; of several URLs, one after the "
           "other. Ctrl-C ends it with the figures so far. The names are its own, and all is given "
           "back.\n\n"
           "mutex takes locks and gives them back; with as many names as clients nobody waits. "
           "shared does it beside others. handover has all clients wait for few names and measures "
           "from one's unlock() to the next one's lock(). lease begins leases and ends them.",
       .words_max = 16,
       .options = {{"-m,--mode", "MODE", "mutex, shared, handover or lease [mutex]",
                    "mutex shared handover lease"},
                   {"-c,--clients", "NUMBER", "So many at once [8]"},
                   {"-n,--names", "NUMBER", "Of locks [as many as clients; handover: 1]"},
                   {"-t,--time", "DURATION", "For so long [5s]"},
                   {"--count", "NUMBER", "At most so many, of all clients"},
                   {"--connections", "NUMBER", "Shared by the clients [1]"},
                   {"--ttl", "DURATION", "Of the leases [10s]"}},
       .examples = {{"tenure bench", "the server of TENURE_URL"},
                    {"tenure bench -m handover -c 16 tenure://a redis://b", "two side by side"}},
       .run = bench},
      {.name = "doctor",
       .synopsis = "",
       .summary = "Check the way from here to the locks, and say what to do",
       .description = "URL, TLS, each server, versions, disks, the speed of the clocks, and a lock "
                      "taken and given back. 1 if something is bad.",
       .run = doctor},
      {.name = "completion",
       .synopsis = "bash|zsh|fish",
       .summary = "Print a script by which a shell completes our words",
       .description = "`make install` puts them where the shells look.",
       .words_min = 1,
       .words_max = 1,
       .word = Word::shell,
       .examples = {{"source <(tenure completion bash)", "for this shell"}},
       .run = print_completion},
      {.name = "man",
       .synopsis = "[COMMAND]",
       .summary = "Print a manual page, for man(1)",
       .description = "`make install` puts them where man(1) looks.",
       .words_max = 2,
       .word = Word::command,
       .options = {{"--list", "", "Print the names of all pages and their commands"}},
       .examples = {{"tenure man run | man -l -", "tenure-run(1)"}},
       .run = print_man_page},
  };
}

}  // namespace tenure::cli
