// tenure wait: waits until a lock is free, without acquiring it.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

#include "cli/commands.hpp"
#include "cli/conflict.hpp"
#include "cli/exit_code.hpp"
#include "cli/output.hpp"
#include "cli/retry.hpp"
#include "cli/service.hpp"
#include "cli/signals.hpp"

namespace tenure::cli {
namespace {

using SteadyClock = std::chrono::steady_clock;

/// Longest wait for an event before the holders are read again.
constexpr std::chrono::seconds reread_interval{5};
/// Interval of the checks for a signal and for the end of the wait. They send nothing.
constexpr std::chrono::milliseconds tick{100};

/// Returns after an event of the lock, at the deadline, at a requested stop, or after
/// reread_interval. Drops a watch that has ended: the holders are then read more often.
void await_change(std::optional<Watch>& events, SteadyClock::time_point deadline,
                  const std::stop_token& stop) {
  if (!events) {
    // Services without watches.
    static_cast<void>(pause_before_retry(deadline, stop));
    return;
  }
  const auto until = std::min(deadline, SteadyClock::now() + reread_interval);
  while (SteadyClock::now() < until && !stop.stop_requested()) {
    const auto event =
        events->next_for(std::min<SteadyClock::duration>(tick, until - SteadyClock::now()));
    if (event) {
      return;
    }
    if (event.error() != Errc::timed_out) {
      events.reset();
      return;
    }
  }
}

/// Waits until the lock has no holder. False: the wait ended before that.
Result<bool> becomes_free(const Client& client, const std::string& name,
                          SteadyClock::time_point deadline, const std::stop_token& stop) {
  // Before the first look at the holders, so that no release is missed in between.
  auto watch = client.watch(name);
  auto events = watch ? std::optional(*std::move(watch)) : std::nullopt;
  while (!stop.stop_requested()) {
    const auto holders = client.holders(name);
    if (!holders && (holders.error() != Errc::unavailable || SteadyClock::now() >= deadline)) {
      return std::unexpected(holders.error());
    }
    if (holders && holders->empty()) {
      return true;
    }
    if (SteadyClock::now() >= deadline) {
      return false;
    }
    await_change(events, deadline, stop);
  }
  return false;
}

}  // namespace

int wait_until_free(const Arguments& arguments) {
  const Signals signals;
  const auto wait = arguments.duration("--wait");
  const auto conflict = arguments.number("--conflict-exit-code", 255);
  if (!wait || !conflict) {
    return failed(!wait ? wait.error() : conflict.error());
  }
  if (*wait && arguments.has("--no-wait")) {
    return failed({Errc::invalid_argument, "--wait and --no-wait exclude each other"});
  }
  const auto began = SteadyClock::now();
  constexpr std::chrono::hours forever{24 * 365};
  const auto deadline = arguments.has("--no-wait") ? began : began + wait->value_or(forever);
  std::stop_source stop;
  std::atomic<int> signal = 0;
  std::atomic<bool> is_connected = false;
  const TerminationWatch termination(signals, [&](int number) {
    if (!is_connected) {
      std::_Exit(code(ExitCode::signalled) + number);
    }
    signal = number;
    stop.request_stop();
  });
  // As for a lock: the wait includes the time until the server is reachable.
  const auto retry = retry_end(arguments);
  if (!retry) {
    return failed(retry.error());
  }
  const auto client = open_client(arguments, *wait ? std::max(*retry, deadline) : *retry);
  if (!client) {
    return failed(client.error());
  }
  is_connected = true;
  const auto& name = arguments.words.front();
  const auto is_free = becomes_free(*client, name, deadline, stop.get_token());
  if (signal != 0) {
    return code(ExitCode::signalled) + signal;
  }
  if (!is_free) {
    return failed(is_free.error());
  }
  if (!*is_free && format_of(arguments) != Format::quiet) {
    print_error("not free: " + conflict_text(arguments, *client, {name}));
  }
  return *is_free ? code(ExitCode::done)
                  : static_cast<int>(conflict->value_or(code(ExitCode::busy)));
}

}  // namespace tenure::cli
