#include "backends/redis/errors.hpp"

#include <algorithm>
#include <array>
#include <span>

namespace tenure::backends::redis {
namespace {

/// Meaning of an error reply by its prefix.
struct ErrorRule {
  /// Beginning of the error reply.
  std::string_view prefix;
  /// Error code for the caller.
  Errc code;
  /// Remedy, appended to the server's text.
  std::string_view advice;
};

/// Rules in order; the first match applies. All other errors are `unavailable`.
constexpr std::array error_rules{
    ErrorRule{"NOAUTH", Errc::permission_denied,
              "; set the user and password in the URL: redis://user:password@host"},
    ErrorRule{"WRONGPASS", Errc::permission_denied, "; check user and password"},
    ErrorRule{"ERR AUTH", Errc::permission_denied,
              "; the server requires no password; remove it from the URL"},
    ErrorRule{"NOPERM", Errc::permission_denied,
              "; docs/reference/redis_keys.md lists the required permissions"},
    ErrorRule{"DENIED", Errc::permission_denied, "; the server is in protected mode"},
    ErrorRule{"OOM", Errc::resource_exhausted, "; nothing was changed"},
    ErrorRule{"WRONGTYPE", Errc::invalid_argument,
              "; the key has a foreign value; use another namespace=…"},
    ErrorRule{"TENURE", Errc::invalid_argument, "; use another namespace=…"},
    ErrorRule{"ERR DB index", Errc::invalid_argument,
              "; the server has fewer databases than the URL's number"},
    ErrorRule{"ERR invalid DB", Errc::invalid_argument,
              "; the server has fewer databases than the URL's number"},
    ErrorRule{"ERR max number of clients", Errc::resource_exhausted, ""},
    ErrorRule{"ERR unknown command", Errc::unsupported, "; Redis 6.2 or later is required"},
};

/// Errors of a server that cannot execute commands at the moment.
constexpr std::array<std::string_view, 8> transient_prefixes{
    "LOADING",     "BUSY ",    "TRYAGAIN",   "MASTERDOWN",
    "CLUSTERDOWN", "READONLY", "NOREPLICAS", "UNKILLABLE"};

/// Errors of a cluster node that does not serve the slot.
constexpr std::array<std::string_view, 4> redirect_prefixes{"MOVED ", "ASK ", "TRYAGAIN",
                                                            "CLUSTERDOWN"};

/// Error inside of a script on a replica, before Redis 7; later versions reply with READONLY
/// itself.
constexpr std::string_view read_only_in_script = " -READONLY ";

bool starts_with_any(std::string_view words, std::span<const std::string_view> beginnings) {
  return std::ranges::any_of(beginnings,
                             [&](std::string_view one) { return words.starts_with(one); });
}

}  // namespace

Error error_from(std::string_view words, const std::string& where) {
  const auto* const it = std::ranges::find_if(
      error_rules, [&](const ErrorRule& one) { return words.starts_with(one.prefix); });
  const bool is_known = it != error_rules.end();
  return {.code = is_known ? it->code : Errc::unavailable,
          .detail = where + ": " + std::string(words) + std::string(is_known ? it->advice : "")};
}

bool is_transient(std::string_view words) {
  return starts_with_any(words, transient_prefixes) ||
         words.find(read_only_in_script) != words.npos;
}

bool is_redirect(std::string_view words) {
  return starts_with_any(words, redirect_prefixes);
}

}  // namespace tenure::backends::redis
