// tenure run: holds locks while a command runs.

#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

#include "cli/acquire.hpp"
#include "cli/child.hpp"
#include "cli/commands.hpp"
#include "cli/exit_code.hpp"
#include "cli/holding.hpp"
#include "cli/output.hpp"
#include "cli/service.hpp"
#include "cli/signals.hpp"
#include "cli/supervisor.hpp"
#include "cli/watchdog.hpp"
#include "sys/json_writer.hpp"

namespace tenure::cli {
namespace {

/// Command with the variables that it needs to use the lock: the token for fenced writes, and the
/// URL for `tenure fence check` and nested commands.
Program program_of(const Arguments& arguments, const AcquireSpec& spec, const HeldLock& held) {
  Program program{.words = arguments.command,
                  .environment = {"TENURE_NAME=" + joined(spec.names, "\n"),
                                  "TENURE_TOKEN=" + std::to_string(held.token().get()),
                                  "TENURE_LEASE_MS=" + std::to_string(spec.ttl.count()),
                                  "TENURE_URL=" + url_of(arguments)}};
  // Nested commands do not see the options of this process, and could not log in otherwise.
  if (const auto file = arguments.text("--token-file")) {
    program.environment.push_back("TENURE_AUTH_FILE=" + *file);
    // An empty variable counts as unset. A token for another server would take precedence.
    program.environment.push_back("TENURE_AUTH_TOKEN=");
  }
  return program;
}

/// Exit codes of a shell: 127 if the command does not exist, 126 if it cannot be executed.
int cannot_execute(const std::string& command, int why) {
  print_error(plain(command) + ": " + std::strerror(why));
  return code(why == ENOENT ? ExitCode::not_found : ExitCode::cannot_execute);
}

/// Rules from --at-most, --grace and --on-lost.
Result<EndRules> parse_end_rules(const Arguments& arguments, std::chrono::milliseconds ttl) {
  const auto at_most = arguments.duration("--at-most");
  const auto grace = arguments.duration("--grace");
  if (!at_most || !grace) {
    return std::unexpected(!at_most ? at_most.error() : grace.error());
  }
  if (*at_most && (*at_most)->count() == 0) {
    return fail(Errc::invalid_argument, "--at-most must be positive");
  }
  const auto action = arguments.text("--on-lost").value_or("term");
  return EndRules{.ttl = ttl,
                  .on_lost = action == "kill"     ? OnLost::kill
                             : action == "ignore" ? OnLost::ignore
                                                  : OnLost::term,
                  .at_most = *at_most,
                  .grace = *grace};
}

/// Releases the lock and returns the exit code. A loss that only the release shows is noted in
/// `ending`.
int conclude(ChildResult& ending, HeldLock& held) {
  if (ending.is_lost || ending.is_over_time) {
    // Release anyway: the service may still count the lease, and the next holder need not wait for
    // it.
    (void)held.unlock();
    return code(ExitCode::lost);
  }
  const auto unlocked = held.unlock();
  // The command has ended by itself, and its last writes may have raced with the next holder.
  if (!unlocked && unlocked.error() == Errc::lease_lost) {
    ending.is_lost = true;
    print_error("the lock was lost while the command ran: " + unlocked.error().detail);
    return code(ExitCode::lost);
  }
  // The command has ended under the lock, so its exit code counts.
  if (!unlocked) {
    print_error("cannot release the lock; it is free when its lease expires: " +
                unlocked.error().detail);
  }
  return ending.exit_code;
}

/// One line after the output of the command, with --json. `ending`: null if the command did not
/// run.
void report(const Arguments& arguments, const AcquireSpec& spec, const HoldAttempt& attempt,
            const ChildResult* ending, int exit_code) {
  if (format_of(arguments) != Format::json) {
    return;
  }
  sys::JsonWriter json;
  json.begin_object();
  write_fields(json, spec);
  json.field("is_acquired", attempt.handle != nullptr)
      .field("waited_ms", static_cast<std::uint64_t>(attempt.waited.count()))
      .field("exit_code", static_cast<std::uint64_t>(exit_code));
  if (attempt.handle) {
    json.id("token", attempt.handle->token().get());
  }
  if (ending != nullptr) {
    json.field("command_exit_code", static_cast<std::uint64_t>(ending->exit_code))
        .field("is_lost", ending->is_lost)
        .field("is_over_time", ending->is_over_time);
  }
  print(json.end_object().text() + "\n");
}

}  // namespace

int run(const Arguments& arguments) {
  // The order matters. Files first: later descriptors are not inherited. Signals before any thread:
  // all threads have to block them. Watchdog before any thread, too: its process is a copy of this
  // one by fork().
  const InheritedFiles files;
  const Signals signals;
  Watchdog watchdog;
  const auto conflict = arguments.number("--conflict-exit-code", 255);
  const auto spec = parse_acquire_spec(arguments);
  if (!conflict || !spec) {
    return failed(!conflict ? conflict.error() : spec.error());
  }
  const auto rules = parse_end_rules(arguments, spec->ttl);
  if (!rules) {
    return failed(rules.error());
  }
  auto held = hold(arguments, *spec, signals);
  // The user may choose the exit code for contention only. Other failures keep theirs.
  if (!held.handle) {
    const auto exit_code =
        held.is_busy ? static_cast<int>(conflict->value_or(held.exit_code)) : held.exit_code;
    report(arguments, *spec, held, nullptr, exit_code);
    return exit_code;
  }
  // Only now: the wait for the lock may have taken hours, in which the shell may have moved this
  // process to the background.
  const Foreground foreground;
  // Set the deadline before the command starts: its first action may be to stop this process.
  auto child = Child::start(program_of(arguments, *spec, *held.handle), files, signals, foreground,
                            [&](pid_t group) {
                              // With group 0 after a failed start, the watchdog has nothing to
                              // kill.
                              watchdog.set_deadline(group, watchdog_deadline(*held.handle, *rules));
                            });
  if (!child) {
    // The command did not run, so its own error is reported instead of one of the release.
    (void)held.handle->unlock();
    const auto exit_code = cannot_execute(arguments.command.front(), child.error());
    report(arguments, *spec, held, nullptr, exit_code);
    return exit_code;
  }
  Supervisor supervisor(
      *held.handle, *child, watchdog,
      {.rules = *rules, .warn = [](std::string_view what) { print_error(what); }});
  // The release comes last: the lock has to cover the whole run of the command.
  auto ending = supervisor.run(signals, foreground);
  const auto exit_code = conclude(ending, *held.handle);
  report(arguments, *spec, held, &ending, exit_code);
  return exit_code;
}

}  // namespace tenure::cli
