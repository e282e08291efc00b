#include "backends/redis/errors.hpp"

#include <algorithm>
#include <array>
#include <span>

namespace tenure::backends::redis {
namespace {

struct ErrorRule {
  std::string_view prefix;
  Errc code;
  std::string_view advice;
};

constexpr std::array error_rules{
    ErrorRule{"NOAUTH", Errc::permission_denied, "; redis://user:password@host says who we are"},
    ErrorRule{"WRONGPASS", Errc::permission_denied, "; user or password is wrong"},
    ErrorRule{"ERR AUTH", Errc::permission_denied, "; it has no password, so give none"},
    ErrorRule{"NOPERM", Errc::permission_denied,
              "; docs/reference/redis_keys.md has the rights that a user needs"},
    ErrorRule{"DENIED", Errc::permission_denied, "; it is in protected mode"},
    ErrorRule{"OOM", Errc::resource_exhausted, "; nothing was changed"},
    ErrorRule{"WRONGTYPE", Errc::invalid_argument,
              "; a key that we keep locks in holds something else: another namespace=… helps"},
    ErrorRule{"TENURE", Errc::invalid_argument, "; another namespace=… helps"},
    ErrorRule{"ERR DB index", Errc::invalid_argument, "; the server has fewer databases"},
    ErrorRule{"ERR invalid DB", Errc::invalid_argument, "; the server has fewer databases"},
    ErrorRule{"ERR max number of clients", Errc::resource_exhausted, ""},
    ErrorRule{"ERR unknown command", Errc::unsupported, "; Redis 6.2 or later is needed"},
};

constexpr std::array<std::string_view, 8> transient_prefixes{
    "LOADING",     "BUSY ",    "TRYAGAIN",   "MASTERDOWN",
    "CLUSTERDOWN", "READONLY", "NOREPLICAS", "UNKILLABLE"};

constexpr std::array<std::string_view, 4> redirect_prefixes{"MOVED ", "ASK ", "TRYAGAIN",
                                                            "CLUSTERDOWN"};

/// What Redis before 7 says when a script meets a replica.
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
