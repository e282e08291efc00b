#pragma once

#include <tenure/error.hpp>

namespace tenure::cli {

/// Exit codes of the command, from sysexits.h where they fit; docs/reference/cli.md lists them.
/// `tenure run` returns the exit code of its command in all other cases.
enum class ExitCode : int {
  done = 0,
  no = 1,  ///< Negative result: nothing is held, a check failed.
  usage = 64,
  unreachable = 69,
  internal = 70,
  busy = 75,  ///< Not acquired: another owner has it. --conflict-exit-code changes it.
  not_permitted = 77,
  lost = 79,  ///< The lock was lost, or about to be; or the command exceeded --at-most.
  cannot_execute = 126,
  not_found = 127,
  signalled = 128,  ///< Plus the number of the signal.
};

/// Value for exit().
[[nodiscard]] constexpr int code(ExitCode value) noexcept {
  return static_cast<int>(value);
}

/// Exit code for an error. A script can distinguish contention (75: retry later) from an
/// unreachable service or an exhausted limit (69), and from a wrong call (64).
[[nodiscard]] constexpr ExitCode exit_code_of(Errc error) noexcept {
  switch (error) {
    case Errc::would_block:
    case Errc::timed_out:
    case Errc::deadlock: return ExitCode::busy;
    case Errc::invalid_argument:
    case Errc::unsupported: return ExitCode::usage;
    case Errc::not_held: return ExitCode::no;
    case Errc::lease_lost: return ExitCode::lost;
    case Errc::permission_denied: return ExitCode::not_permitted;
    case Errc::cancelled: return ExitCode::no;
    case Errc::resource_exhausted:
    case Errc::unavailable: return ExitCode::unreachable;
  }
  return ExitCode::internal;
}

}  // namespace tenure::cli
