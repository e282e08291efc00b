#include "backends/redis/faults.hpp"

#include <algorithm>
#include <array>
#include <span>

namespace tenure::backends::redis {
namespace {

struct Known {
  std::string_view begins;
  Errc code;
  std::string_view advice;
};

constexpr std::array known{
    Known{"NOAUTH", Errc::permission_denied, "; redis://user:password@host says who we are"},
    Known{"WRONGPASS", Errc::permission_denied, "; user or password is wrong"},
    Known{"ERR AUTH", Errc::permission_denied, "; it has no password, so give none"},
    Known{"NOPERM", Errc::permission_denied,
          "; docs/reference/redis_keys.md has the rights that a user needs"},
    Known{"DENIED", Errc::permission_denied, "; it is in protected mode"},
    Known{"OOM", Errc::resource_exhausted, "; nothing was changed"},
    Known{"WRONGTYPE", Errc::invalid_argument,
          "; a key that we keep locks in holds something else: another namespace=… helps"},
    Known{"TENURE", Errc::invalid_argument, "; another namespace=… helps"},
    Known{"ERR DB index", Errc::invalid_argument, "; the server has fewer databases"},
    Known{"ERR invalid DB", Errc::invalid_argument, "; the server has fewer databases"},
    Known{"ERR max number of clients", Errc::resource_exhausted, ""},
    Known{"ERR unknown command", Errc::unsupported, "; Redis 6.2 or later is needed"},
};

constexpr std::array<std::string_view, 8> passing{"LOADING",    "BUSY ",       "TRYAGAIN",
                                                  "MASTERDOWN", "CLUSTERDOWN", "READONLY",
                                                  "NOREPLICAS", "UNKILLABLE"};

constexpr std::array<std::string_view, 4> astray{"MOVED ", "ASK ", "TRYAGAIN", "CLUSTERDOWN"};

/// What Redis before 7 says when a script meets a replica.
constexpr std::string_view read_only_inside = " -READONLY ";

bool begins_with_one_of(std::string_view words, std::span<const std::string_view> beginnings) {
  return std::ranges::any_of(beginnings,
                             [&](std::string_view one) { return words.starts_with(one); });
}

}  // namespace

Error error_from(std::string_view words, const std::string& where) {
  const auto* const it =
      std::ranges::find_if(known, [&](const Known& one) { return words.starts_with(one.begins); });
  const bool is_known = it != known.end();
  return {.code = is_known ? it->code : Errc::unavailable,
          .detail = where + ": " + std::string(words) + std::string(is_known ? it->advice : "")};
}

bool is_passing(std::string_view words) {
  return begins_with_one_of(words, passing) || words.find(read_only_inside) != words.npos;
}

bool is_astray(std::string_view words) {
  return begins_with_one_of(words, astray);
}

}  // namespace tenure::backends::redis
