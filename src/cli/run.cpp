// tenure run, lock and try: a lock for as long as a command runs, or until somebody says stop.

#include <atomic>
#include <csignal>
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
#include "cli/supervise.hpp"
#include "cli/warden.hpp"

namespace tenure::cli {
namespace {

Program program_of(const Arguments& arguments, const Wish& wish, const LockHandle& held) {
  Program program{.words = arguments.command,
                  .environment = {"TENURE_NAME=" + joined(wish.names, "\n"),
                                  "TENURE_TOKEN=" + std::to_string(held.token().get()),
                                  "TENURE_LEASE_MS=" + std::to_string(wish.ttl.count()),
                                  "TENURE_URL=" + url_of(arguments)}};
  if (const auto file = arguments.text("--token-file")) {
    program.environment.push_back("TENURE_AUTH_FILE=" + *file);
  }
  return program;
}

int cannot_execute(const std::string& command, int why) {
  complain(plain(command) + ": " + std::strerror(why));
  return code(why == ENOENT ? ExitCode::not_found : ExitCode::cannot_execute);
}

/// What the command ended with, after the lock was given back.
int conclude(const Ending& ending, LockHandle& held) {
  if (ending.is_lost) {
    // Given back all the same, so that nobody waits for the end of the lease.
    (void)held.unlock();
    return code(ExitCode::lost);
  }
  const auto unlocked = held.unlock();
  if (!unlocked && unlocked.error() == Errc::lease_lost) {
    complain("the lock was lost while the command ran: " + unlocked.error().detail);
    return code(ExitCode::lost);
  }
  if (!unlocked) {
    complain("the lock could not be given back and ends with its lease: " +
             unlocked.error().detail);
  }
  return ending.exit_code;
}

}  // namespace

int run(const Arguments& arguments) {
  if (arguments.command.empty()) {
    return lock(arguments);
  }
  const InheritedFiles files;
  const Signals signals;
  Warden warden;
  const auto conflict = arguments.number("--conflict-exit-code", 255);
  const auto wish = wish_of(arguments);
  if (!conflict || !wish) {
    return failed(!conflict ? conflict.error() : wish.error());
  }
  auto held = hold(arguments, *wish, signals);
  if (!held.possession) {
    return held.is_busy ? static_cast<int>(conflict->value_or(held.exit_code)) : held.exit_code;
  }
  const Foreground foreground;
  // The warden knows it before it begins: it might stop us at once.
  auto child = Child::start(
      program_of(arguments, *wish, *held.possession), files, signals, foreground,
      [&](pid_t group) { warden.guard(group, last_moment(*held.possession, wish->ttl)); });
  if (!child) {
    (void)held.possession->unlock();
    return cannot_execute(arguments.command.front(), child.error());
  }
  Supervisor supervisor(*held.possession, *child, warden,
                        {.ttl = wish->ttl, .warn = [](std::string_view what) { complain(what); }});
  return conclude(supervisor.run(signals, foreground), *held.possession);
}

}  // namespace tenure::cli
