#include "cli/holding.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <stop_token>
#include <utility>

#include "cli/conflict.hpp"
#include "cli/exit_code.hpp"
#include "cli/output.hpp"
#include "cli/period.hpp"
#include "cli/retry.hpp"
#include "cli/service.hpp"

namespace tenure::cli {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

/// Prints the error, and separates contention, for which the user may choose the exit code.
HoldAttempt not_held(const Error& error, const AcquireSpec& spec, const Arguments& arguments,
                     const Client& client) {
  const bool is_busy = exit_code_of(error.code) == ExitCode::busy;
  if (!is_busy) {
    return {.exit_code = failed(error)};
  }
  // --output quiet behaves like flock(1): only the exit code reports a conflict.
  if (format_of(arguments) != Format::quiet) {
    // A deadlock is explained by its cycle; all other conflicts by the holder.
    print_error("not acquired: " + (error.code == Errc::deadlock
                                        ? plain(joined(spec.names, ", ")) + ": " + to_string(error)
                                        : conflict_text(arguments, client, lock_names(spec))));
  }
  return {.is_busy = true, .exit_code = code(ExitCode::busy)};
}

/// Ends an attempt whose job has started less than --every ago; also after another error.
HoldAttempt not_due(const Error& error, const AcquireSpec& spec, const Arguments& arguments,
                    const Client& client) {
  if (error != Errc::would_block) {
    return {.exit_code = failed(error)};
  }
  if (format_of(arguments) != Format::quiet) {
    print_error("not started: the last start was less than --every ago: " +
                conflict_text(arguments, client, {period_name(spec)}));
  }
  return {.is_busy = true, .exit_code = code(ExitCode::busy)};
}

}  // namespace

HoldAttempt hold(const Arguments& arguments, const AcquireSpec& spec, const Signals& signals) {
  // Rejected, because a script would otherwise run without any exclusion and without an error.
  if (url_of(arguments).starts_with("memory:")) {
    return {.exit_code = failed({Errc::unsupported,
                                 "memory:// locks exist in this process only and exclude no other "
                                 "process; name a server with --url or TENURE_URL"})};
  }
  std::stop_source cancel;
  // Written on the thread of TerminationWatch, read on this one.
  std::atomic<int> signal = 0;
  std::atomic<bool> is_connected = false;
  const TerminationWatch watch(signals, [&](int number) {
    if (!is_connected) {
      // Nothing is held: exit at once instead of waiting for a server that does not reply.
      std::_Exit(code(ExitCode::signalled) + number);
    }
    // Before the cancellation, which may wake this thread at once.
    signal = number;
    cancel.request_stop();
  });
  const auto began = Clock::now();
  const auto waited = [began] {
    return std::chrono::duration_cast<milliseconds>(Clock::now() - began);
  };
  const auto retry = retry_end(arguments);
  if (!retry) {
    return {.exit_code = failed(retry.error())};
  }
  // A server that restarts is a reason to wait, as a holder is.
  const auto end = std::max(*retry, began + spec.wait.value_or(milliseconds::zero()));
  auto client = open_client(arguments, end);
  if (!client) {
    return {.exit_code = failed(client.error())};
  }
  // From now on a signal cancels the wait, so that the request leaves the wait queue of the
  // service.
  is_connected = true;
  auto held = retry_until(
      end,
      [&] {
        auto rest = spec;
        // The time of earlier attempts counts.
        rest.wait = spec.wait ? std::optional(std::max(*spec.wait - waited(), milliseconds::zero()))
                              : std::nullopt;
        return acquire(*client, rest, arguments, cancel.get_token());
      },
      cancel.get_token());
  // Under the lock, so that the job that the record describes has ended.
  const auto begun =
      held && spec.every && signal == 0 ? begin_period(*client, spec, *spec.every) : Result<void>();
  // Even if the lock was granted at the same time: the user has asked to stop. The handle is
  // destroyed, which releases the lock.
  if (signal != 0) {
    return {.exit_code = code(ExitCode::signalled) + signal};
  }
  if (!held || !begun) {
    auto attempt = !held ? not_held(held.error(), spec, arguments, *client)
                         : not_due(begun.error(), spec, arguments, *client);
    attempt.waited = waited();
    return attempt;
  }
  return {.client = *std::move(client), .handle = *std::move(held), .waited = waited()};
}

}  // namespace tenure::cli
