#include "backends/etcd/errors.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "backends/rpc/channel_connector.hpp"

namespace tenure::backends::etcd {
namespace {

struct Rule {
  std::string_view pattern;  ///< Substring of etcd's error message.
  Recovery recovery;
  Errc code;
  std::string_view hint;
};

// One gRPC status covers errors that need different recoveries, so the message decides.
constexpr std::array rules{
    Rule{"invalid auth token", Recovery::reauthenticate, Errc::permission_denied, ""},
    Rule{"revision of auth store is old", Recovery::reauthenticate, Errc::permission_denied, ""},
    Rule{"user name is empty", Recovery::none, Errc::permission_denied,
         "; use etcd://user:password@host"},
    Rule{"authentication failed", Recovery::none, Errc::permission_denied,
         "; user or password is wrong"},
    Rule{"authentication is not enabled", Recovery::none, Errc::permission_denied,
         "; authentication is disabled on the server; remove user:password from the URL"},
    Rule{"permission denied", Recovery::none, Errc::permission_denied,
         "; docs/reference/etcd_keys.md lists the required permissions"},
    Rule{"requested lease not found", Recovery::none, Errc::lease_lost, ""},
    Rule{"database space exceeded", Recovery::none, Errc::resource_exhausted,
         "; nothing was changed; an operator must compact and defragment it"},
    Rule{"request is too large", Recovery::none, Errc::invalid_argument, ""},
    Rule{"too many operations", Recovery::none, Errc::invalid_argument, ""},
    Rule{"duplicate key given", Recovery::none, Errc::invalid_argument, ""},
    Rule{"too large lease TTL", Recovery::none, Errc::invalid_argument, ""},
    Rule{"lease already exists", Recovery::none, Errc::unavailable, ""},
    Rule{"too many requests", Recovery::other_member, Errc::unavailable, ""},
};

const Rule* find(std::string_view message) {
  const auto* const it = std::ranges::find_if(
      rules, [&](const Rule& one) { return message.find(one.pattern) != std::string_view::npos; });
  return it == rules.end() ? nullptr : it;
}

Failure failure_of(const Rule& one, const std::string& message, const std::string& server) {
  return {.recovery = one.recovery,
          .error = {.code = one.code, .detail = server + ": " + message + std::string(one.hint)}};
}

}  // namespace

Failure classify(const grpc::Status& status, const std::string& server) {
  if (const auto* one = find(status.message)) {
    return failure_of(*one, status.message, server);
  }
  auto error = error_from(status, server);
  // `internal` means that etcd could not decode the request, so it was not executed.
  const bool is_transient = error == Errc::unavailable && status.code != grpc::StatusCode::internal;
  return {.recovery = is_transient ? Recovery::other_member : Recovery::none,
          .error = std::move(error)};
}

// A stream is never at fault itself: its owner opens it again, so Recovery::none is not used.
Failure classify_stream(const grpc::Status& status, const std::string& server) {
  if (status.ok() || status.code == grpc::StatusCode::cancelled) {
    return {.recovery = Recovery::other_member, .error = malformed_reply(server)};
  }
  auto failure = classify(status, server);
  failure.recovery = failure.recovery == Recovery::reauthenticate ? Recovery::reauthenticate
                                                                  : Recovery::other_member;
  return failure;
}

Failure classify(const std::string& message, const std::string& server) {
  if (const auto* one = find(message)) {
    return failure_of(*one, message, server);
  }
  return {.recovery = Recovery::other_member,
          .error = {.code = Errc::unavailable, .detail = server + ": " + message}};
}

Error malformed_reply(const std::string& server) {
  return {.code = Errc::unavailable,
          .detail = server + ": malformed reply; is it etcd, 3.4 or later?"};
}

}  // namespace tenure::backends::etcd
