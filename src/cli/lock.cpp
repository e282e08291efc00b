// tenure lock and tenure try: hold locks until a signal.

#include <array>
#include <csignal>
#include <cstdint>
#include <stop_token>

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "cli/acquire.hpp"
#include "cli/commands.hpp"
#include "cli/holding.hpp"
#include "cli/output.hpp"
#include "cli/service_lock.hpp"
#include "cli/signals.hpp"
#include "sys/json_writer.hpp"

namespace tenure::cli {
namespace {

/// Prints the names and the fencing token, which scripts wait for as the sign that the lock is
/// held.
void announce(const Arguments& arguments, const AcquireSpec& spec, FencingToken granted) {
  const auto token = std::to_string(granted.get());
  switch (format_of(arguments)) {
    case Format::quiet:
      // The next step of a script needs the token to release the lock.
      print(spec.lease ? token + "\n" : "");
      return;
    case Format::table:
      print(colored(Color::green, "held") + " " + plain(joined(spec.names, ", ")) +
            ", fencing token " + token + "\n");
      return;
    case Format::json: break;
  }
  sys::JsonWriter json;
  json.begin_object();
  write_fields(json, spec);
  json.field("token", std::string_view(token));
  if (spec.lease) {
    json.id("lease", spec.lease->get());
  } else {
    json.field("ttl_ms", static_cast<std::uint64_t>(spec.ttl.count()));
  }
  json.end_object();
  print(json.text() + "\n");
}

/// Waits for a termination signal and returns it; 0 if the lock is lost.
int wait_for_end(const HeldLock& held, const Signals& signals) {
  // The loss becomes a file descriptor, so that one poll() waits for signals and loss.
  const int lost = eventfd(0, EFD_CLOEXEC);
  const auto ring = [lost] {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(lost, &one, sizeof(one));
  };
  int signal = 0;
  {
    // In a block: the callback must be gone before the descriptor is closed.
    const std::stop_callback on_loss(held.lost(), ring);
    std::array<pollfd, 2> wakers{{{.fd = signals.file(), .events = POLLIN, .revents = 0},
                                  {.fd = lost, .events = POLLIN, .revents = 0}}};
    while (signal == 0 && wakers[1].revents == 0) {
      poll(wakers.data(), wakers.size(), -1);
      const auto next = signals.next().value_or(0);
      // Ctrl-Z. The signal is blocked, so this process has to stop itself. The lease is not renewed
      // while it is stopped, and a loss is reported after it continues.
      if (next == SIGTSTP) {
        kill(getpid(), SIGSTOP);
      }
      signal = is_termination(next) ? next : 0;
    }
  }
  close(lost);
  return signal;
}

/// Acquires, announces, waits, releases. Returns the exit code.
int hold_until_signal(const Arguments& arguments, const AcquireSpec& spec) {
  const Signals signals;
  auto held = hold(arguments, spec, signals);
  if (!held.handle) {
    const auto conflict = arguments.number("--conflict-exit-code", 255);
    return held.is_busy && conflict ? static_cast<int>(conflict->value_or(held.exit_code))
                                    : held.exit_code;
  }
  announce(arguments, spec, held.handle->token());
  if (wait_for_end(*held.handle, signals) == 0) {
    print_error("the lock is lost");
    return code(ExitCode::lost);
  }
  // With the reply, so that the exit code reports a lock that was lost just before.
  const auto unlocked = held.handle->unlock();
  return unlocked ? code(ExitCode::done) : failed(unlocked.error());
}

/// Acquires under an existing lease and exits: the hold belongs to the lease. A signal ends this
/// process, and with its connection the request.
int hold_under_lease(const Arguments& arguments, const AcquireSpec& spec) {
  auto service = Service::open(arguments);
  const auto conflict = arguments.number("--conflict-exit-code", 255);
  if (!service || !conflict) {
    return failed(!service ? service.error() : conflict.error());
  }
  // The owner of a hold without a label is that of the lease.
  const auto token = lock_items(*service, spec, *spec.lease, "");
  if (token) {
    announce(arguments, spec, *token);
    return code(ExitCode::done);
  }
  if (exit_code_of(token.error().code) != ExitCode::busy) {
    return failed(token.error());
  }
  if (format_of(arguments) != Format::quiet) {
    print_error("not acquired: " + plain(joined(spec.names, ", ")) + ": " +
                to_string(token.error()));
  }
  return static_cast<int>(conflict->value_or(code(ExitCode::busy)));
}

int lock_as(const Arguments& arguments, const AcquireSpec& spec) {
  return spec.lease ? hold_under_lease(arguments, spec) : hold_until_signal(arguments, spec);
}

}  // namespace

int lock(const Arguments& arguments) {
  const auto spec = parse_acquire_spec(arguments);
  return spec ? lock_as(arguments, *spec) : failed(spec.error());
}

int try_lock(const Arguments& arguments) {
  auto spec = parse_acquire_spec(arguments);
  if (!spec) {
    return failed(spec.error());
  }
  // The same as --no-wait; a --wait of the user is overridden.
  spec->wait = std::chrono::milliseconds::zero();
  return lock_as(arguments, *spec);
}

}  // namespace tenure::cli
