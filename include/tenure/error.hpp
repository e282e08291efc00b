#pragma once

#include <expected>
#include <string>
#include <string_view>
#include <utility>

namespace tenure {

/// Why an operation did not succeed, from the caller's point of view: each value is a different
/// thing the caller should do next. Numbers are stable; new ones are added at the end, so a
/// `switch` over them keeps a `default`.
enum class Errc {
  would_block = 1,     ///< Someone else holds it or waits for it, and we were asked not to wait.
  timed_out,           ///< The deadline passed while waiting. We no longer stand in the queue.
  cancelled,           ///< The wait was called off. We no longer stand in the queue.
  deadlock,            ///< Waiting closed a cycle and we were chosen to give way.
  not_held,            ///< Unlocking something we do not hold.
  invalid_argument,    ///< The request can never succeed as written.
  resource_exhausted,  ///< A documented limit is reached; the request changed nothing.
  lease_lost,          ///< The lease ended, and all that was held under it. Begin anew.
  unavailable,         ///< Nobody can tell what became of it. Ask again with the same request id.
  permission_denied,   ///< The credentials do not allow this on this name. Ask an operator.
  unsupported,         ///< The backend lacks the capability; see docs/reference/backends.md.
  conflict = would_block,  ///< Alias of would_block.
};

/// The name of a code, as it stands in the enumeration.
[[nodiscard]] constexpr std::string_view to_string(Errc code) noexcept {
  switch (code) {
    case Errc::would_block: return "would_block";
    case Errc::timed_out: return "timed_out";
    case Errc::cancelled: return "cancelled";
    case Errc::deadlock: return "deadlock";
    case Errc::not_held: return "not_held";
    case Errc::invalid_argument: return "invalid_argument";
    case Errc::resource_exhausted: return "resource_exhausted";
    case Errc::lease_lost: return "lease_lost";
    case Errc::unavailable: return "unavailable";
    case Errc::permission_denied: return "permission_denied";
    case Errc::unsupported: return "unsupported";
  }
  return "unknown";
}

/// One sentence for people who have nothing but the code.
[[nodiscard]] constexpr std::string_view message(Errc code) noexcept {
  switch (code) {
    case Errc::would_block: return "lock request conflicts with an existing lock";
    case Errc::timed_out: return "the deadline passed before the lock could be granted";
    case Errc::cancelled: return "the wait for the lock was called off";
    case Errc::deadlock:
      return "waiting closed a cycle and this transaction was chosen to give way";
    case Errc::not_held: return "no lock held for this transaction and resource";
    case Errc::invalid_argument: return "the request can never succeed as written";
    case Errc::resource_exhausted: return "a limit of the lock manager is reached";
    case Errc::lease_lost: return "the lease has ended, and with it all that was held under it";
    case Errc::unavailable: return "no answer: what became of the request is not known";
    case Errc::permission_denied: return "the credentials do not allow this";
    case Errc::unsupported: return "this backend cannot do it";
  }
  return "unknown error";
}

/// A code for programs and a detail for people.
struct Error {
  Errc code;                ///< What to do next.
  std::string detail = {};  ///< What is wrong and what to do, where the code alone does not tell.

  friend bool operator==(const Error& error, Errc wanted) noexcept { return error.code == wanted; }
  friend bool operator==(const Error&, const Error&) = default;
};

/// `would_block: lock request conflicts with an existing lock`, or the detail where there is one.
[[nodiscard]] inline std::string to_string(const Error& error) {
  std::string text(to_string(error.code));
  text += ": ";
  text += error.detail.empty() ? message(error.code) : std::string_view(error.detail);
  return text;
}

/// Every fallible call returns one of these. Ask it (`if (!held)`), or insist with `.value()`,
/// which throws std::bad_expected_access<Error>.
template <class T>
using Result = std::expected<T, Error>;

/// The error of a Result: `return fail(Errc::not_held, "nothing is locked");`
[[nodiscard]] inline std::unexpected<Error> fail(Errc code, std::string detail = {}) {
  return std::unexpected(Error{.code = code, .detail = std::move(detail)});
}

}  // namespace tenure
