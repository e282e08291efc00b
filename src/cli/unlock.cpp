// tenure unlock: release of a hold by its token or lease, and forced release.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "cli/commands.hpp"
#include "cli/confirm.hpp"
#include "cli/locks.hpp"
#include "sys/json_writer.hpp"
#include "sys/random.hpp"
#include "tenure/v1/lock.pb.h"

namespace tenure::cli {
namespace {

/// Holders with user and token, for the confirmation: the operator has to see whose work is at
/// risk.
std::string holders_text(const v1::LockStatus& lock) {
  std::string text;
  for (const auto& holder : lock.holders()) {
    text += (text.empty() ? "" : ", ") + plain(holder.owner()) + " (";
    text += holder.user().empty() ? "" : "user " + plain(holder.user()) + ", ";
    text += "token " + std::to_string(holder.fencing_token()) + ")";
  }
  return text;
}

/// Holder of the lock with this token, or under this lease.
const v1::Holder* holder_with(const v1::LockStatus& lock, std::optional<std::uint64_t> token,
                              std::optional<std::uint64_t> lease) {
  const auto found = std::ranges::find_if(lock.holders(), [&](const v1::Holder& holder) {
    return (!token || holder.fencing_token() == *token) && (!lease || holder.lease_id() == *lease);
  });
  return found == lock.holders().end() ? nullptr : &*found;
}

/// Prints the number of released holds.
void print_released(const Arguments& arguments, std::uint64_t holds) {
  if (format_of(arguments) == Format::json) {
    sys::JsonWriter json;
    json.begin_object().field("holds", holds).end_object();
    print(json.text() + "\n");
  } else if (format_of(arguments) == Format::table) {
    print("released " + std::to_string(holds) + "\n");
  }
}

/// Releases an acquisition of `tenure lock --lease`, as its holder does: later holders are not
/// affected, and the rest of the lease continues.
int release(const Arguments& arguments) {
  auto service = Service::open(arguments);
  const auto token = arguments.number("--token", UINT64_MAX);
  const auto lease = arguments.number("--lease", UINT64_MAX);
  if (!service || !token || !lease) {
    return failed(!service ? service.error() : !token ? token.error() : lease.error());
  }
  const auto& name = arguments.words.front();
  const auto lock = explained(*service, service->with_prefix(name), arguments.has("--space"));
  if (!lock) {
    return failed(lock.error());
  }
  const auto* holder = holder_with(lock->lock(), *token, *lease);
  if (holder == nullptr) {
    return failed({Errc::not_held, plain(name) + " is not held with this token or lease"});
  }
  v1::UnlockRequest request;
  request.set_lease_id(holder->lease_id());
  request.set_fencing_token(holder->fencing_token());
  // A repeated request after a lost reply must not fail.
  request.set_request_id(sys::random_id());
  const auto reply = service->ask<v1::UnlockResponse>("LockService/Unlock", request);
  if (!reply) {
    return failed(reply.error());
  }
  print_released(arguments, 1);
  return code(ExitCode::done);
}

}  // namespace

int unlock(const Arguments& arguments) {
  if (!arguments.has("--force")) {
    if (arguments.has("--token") || arguments.has("--lease")) {
      return release(arguments);
    }
    return failed({Errc::invalid_argument,
                   "a holder releases its lock by ending, or by --token or --lease; to force the "
                   "release of another owner's lock: tenure unlock --force NAME"});
  }
  auto service = Service::open(arguments);
  const auto token = arguments.number("--token", UINT64_MAX);
  if (!service || !token) {
    return failed(!service ? service.error() : token.error());
  }
  const auto& name = arguments.words.front();
  // Before the confirmation, which names the holders. They may change until the request arrives.
  const auto lock = explained(*service, service->with_prefix(name), arguments.has("--space"));
  if (!lock) {
    return failed(lock.error());
  }
  // Exit code 1: there is nothing to release, which is not a wrong call.
  if (lock->lock().holder_count() == 0) {
    return failed({Errc::not_held, plain(name) + " is free"});
  }
  const auto asked = confirm(
      arguments, "Force the release of " + plain(name) + ", held by " + holders_text(lock->lock()) +
                     "? Its holder may still write while the next holder runs.");
  if (!asked) {
    return failed(asked.error());
  }
  v1::ForceReleaseRequest request;
  request.set_name(service->with_prefix(name));
  request.set_is_space(arguments.has("--space"));
  // The token of the only holder, so that a request that arrives later does not release its
  // successor. 0 selects all holds at that time.
  const bool is_only = lock->lock().holder_count() == 1 && lock->lock().holders_size() == 1;
  const auto shown = is_only ? lock->lock().holders(0).fencing_token() : 0;
  request.set_fencing_token(token->value_or(shown));
  request.set_reason(arguments.text("--reason").value_or(""));
  // Never repeated: a second execution would release those that acquired the lock after the first.
  // The query above has found the leader.
  const auto answer = service->ask<v1::ForceReleaseResponse>("Admin/ForceRelease", request,
                                                             {.repeat = Service::Repeat::never});
  if (!answer) {
    return failed(answer.error());
  }
  print_released(arguments, answer->holds());
  return code(ExitCode::done);
}

}  // namespace tenure::cli
