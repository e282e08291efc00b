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
#include "cli/signals.hpp"
#include "sys/json_writer.hpp"

namespace tenure::cli {
namespace {

/// Prints the names and the fencing token, which scripts wait for as the sign that the lock is
/// held.
void announce(const Arguments& arguments, const AcquireSpec& spec, const LockHandle& held) {
  const auto token = std::to_string(held.token().get());
  switch (format_of(arguments)) {
    case Format::quiet: return;
    case Format::table:
      print(colored(Color::green, "held") + " " + plain(joined(spec.names, ", ")) +
            ", fencing token " + token + "\n");
      return;
    case Format::json: break;
  }
  sys::JsonWriter json;
  json.begin_object().key("names").begin_array();
  for (const auto& name : spec.names) {
    json.value(std::string_view(name));
  }
  json.end_array();
  if (spec.permits) {
    json.field("permits", std::uint64_t{spec.permits->taken_at_once})
        .field("capacity", std::uint64_t{spec.permits->capacity});
  } else {
    json.field("mode", std::string_view(spec.is_shared ? "S" : "X"));
  }
  json.field("token", std::string_view(token))
      .field("ttl_ms", static_cast<std::uint64_t>(spec.ttl.count()))
      .end_object();
  print(json.text() + "\n");
}

/// Waits for a termination signal and returns it; 0 if the lock is lost.
int wait_for_end(const LockHandle& held, const Signals& signals) {
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
  announce(arguments, spec, *held.handle);
  if (wait_for_end(*held.handle, signals) == 0) {
    print_error("the lock is lost");
    return code(ExitCode::lost);
  }
  // With the reply, so that the exit code reports a lock that was lost just before.
  const auto unlocked = held.handle->unlock();
  return unlocked ? code(ExitCode::done) : failed(unlocked.error());
}

}  // namespace

int lock(const Arguments& arguments) {
  const auto spec = parse_acquire_spec(arguments);
  return spec ? hold_until_signal(arguments, *spec) : failed(spec.error());
}

int try_lock(const Arguments& arguments) {
  auto spec = parse_acquire_spec(arguments);
  if (!spec) {
    return failed(spec.error());
  }
  // The same as --no-wait; a --wait of the user is overridden.
  spec->wait = std::chrono::milliseconds::zero();
  return hold_until_signal(arguments, *spec);
}

}  // namespace tenure::cli
