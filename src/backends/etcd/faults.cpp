#include "backends/etcd/faults.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "backends/rpc/dialer.hpp"

namespace tenure::backends::etcd {
namespace {

struct Known {
  std::string_view part;  ///< Of etcd's words.
  Next next;
  Errc code;
  std::string_view advice;
};

// One status of gRPC covers what wants different steps, so the words decide.
constexpr std::array known{
    Known{"invalid auth token", Next::login, Errc::permission_denied, ""},
    Known{"revision of auth store is old", Next::login, Errc::permission_denied, ""},
    Known{"user name is empty", Next::give_up, Errc::permission_denied,
          "; etcd://user:password@host says who we are"},
    Known{"authentication failed", Next::give_up, Errc::permission_denied,
          "; user or password is wrong"},
    Known{"authentication is not enabled", Next::give_up, Errc::permission_denied,
          "; it knows no users, so name none"},
    Known{"permission denied", Next::give_up, Errc::permission_denied,
          "; docs/reference/etcd_keys.md has the rights that a user needs"},
    Known{"requested lease not found", Next::give_up, Errc::lease_lost, ""},
    Known{"database space exceeded", Next::give_up, Errc::resource_exhausted,
          "; nothing was changed. An operator compacts and defragments it"},
    Known{"request is too large", Next::give_up, Errc::invalid_argument, ""},
    Known{"too many operations", Next::give_up, Errc::invalid_argument, ""},
    Known{"duplicate key given", Next::give_up, Errc::invalid_argument, ""},
    Known{"too large lease TTL", Next::give_up, Errc::invalid_argument, ""},
    Known{"lease already exists", Next::give_up, Errc::unavailable, ""},
    Known{"too many requests", Next::elsewhere, Errc::unavailable, ""},
};

const Known* find(std::string_view words) {
  const auto* const it = std::ranges::find_if(
      known, [&](const Known& one) { return words.find(one.part) != std::string_view::npos; });
  return it == known.end() ? nullptr : it;
}

Verdict verdict_of(const Known& one, const std::string& words, const std::string& server) {
  return {.next = one.next,
          .error = {.code = one.code, .detail = server + ": " + words + std::string(one.advice)}};
}

}  // namespace

Verdict judge(const grpc::Status& status, const std::string& server) {
  if (const auto* one = find(status.message)) {
    return verdict_of(*one, status.message, server);
  }
  auto error = error_from(status, server);
  // What it cannot read it has not done.
  const bool may_pass = error == Errc::unavailable && status.code != grpc::StatusCode::internal;
  return {.next = may_pass ? Next::elsewhere : Next::give_up, .error = std::move(error)};
}

Verdict judge_stream(const grpc::Status& status, const std::string& server) {
  if (status.ok() || status.code == grpc::StatusCode::cancelled) {
    return {.next = Next::elsewhere, .error = nonsense(server)};
  }
  auto verdict = judge(status, server);
  verdict.next = verdict.next == Next::login ? Next::login : Next::elsewhere;
  return verdict;
}

Verdict judge(const std::string& words, const std::string& server) {
  if (const auto* one = find(words)) {
    return verdict_of(*one, words, server);
  }
  return {.next = Next::elsewhere,
          .error = {.code = Errc::unavailable, .detail = server + ": " + words}};
}

Error nonsense(const std::string& server) {
  return {.code = Errc::unavailable,
          .detail = server + ": an answer that makes no sense; is it etcd, 3.4 or later?"};
}

}  // namespace tenure::backends::etcd
