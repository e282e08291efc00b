#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "backends/redis/locks.hpp"

// Grants that do not count yet: those that a failover could forget (LockOptions::min_replicas),
// those that the server would end before we stop believing in them, and those that only a message
// of the wake channel tells of.

namespace tenure::backends::redis {

void Locks::confirm(Waits::iterator it, Granted granted) {
  const auto key = it->first;
  auto& wait = it->second;
  const auto replicas = wait.request.spec->min_replicas;
  if (replicas == 0 && !wait.needs_renewal) {
    settle(it, granted);
    return;
  }
  if (wait.is_leaving || std::exchange(wait.pending_grant, granted)) {
    return;  // it is on its way out, or being confirmed
  }
  memberships_.confirm(wait.request.lease, wait.member_key);
  // To renew it says whether it is still ours, on the connection where WAIT follows: so whoever
  // granted it, and on which connection, replicas that have the one have the other.
  const std::vector<std::string> words{
      std::to_string(memberships_.find(wait.request.lease)->ttl.count()),
      wait.member_key.member.to_string()};
  Command command{.encoded = encoder_.renew(*wait.request.spec, words),
                  .on_reply = [this, key](const auto& answer) { renewal_replied(key, answer); },
                  .retry = wait.request.queue == Queue::wait ? Command::Retry::always
                                                             : Command::Retry::until_timeout};
  if (replicas > 0) {
    router_.run_replicated(std::move(command), replicas);
    return;
  }
  router_.run(std::move(command));
  router_.flush();
}

void Locks::renewal_replied(const RequestKey& key, const Result<Command::Response>& answer) {
  const auto it = waits_.find(key);
  if (it == waits_.end() || it->second.is_leaving || !it->second.pending_grant) {
    return;
  }
  auto& wait = it->second;
  const auto granted = *std::exchange(wait.pending_grant, std::nullopt);
  if (answer && answer->reply.text == "1") {
    settle(key, granted);
    return;
  }
  if (answer) {
    // A failover forgot the grant, or its time is over: it waits again, or asks anew, by the same
    // request.
    send_acquire(key);
    router_.flush();
    return;
  }
  release_grant(wait);
  settle(key, fail(answer.error().code, "granted, and given back: " + answer.error().detail));
}

void Locks::confirm_if_announced(const RequestKey& key) {
  const auto it = waits_.find(key);
  if (it == waits_.end() || it->second.is_request_pending ||
      !std::exchange(it->second.is_announced, false)) {
    return;
  }
  auto& wait = it->second;
  wait.is_request_pending = true;
  router_.run({.encoded = encoder_.confirm(*wait.request.spec, wait.member_key.member,
                                           wait.request.request),
               .on_reply = [this, key](const Result<Command::Response>& answer) {
                 confirm_replied(key, answer);
               }});
  router_.flush();
}

void Locks::confirm_replied(const RequestKey& key, const Result<Command::Response>& answer) {
  const auto it = waits_.find(key);
  if (it == waits_.end()) {
    return;  // called off, and left() gives back what was granted
  }
  it->second.is_request_pending = false;
  if (!answer) {
    settle(it, std::unexpected(answer.error()));
  } else if (answer->reply.number_at(0) == 1) {
    confirm(it, answer->reply);
  } else {
    confirm_if_announced(key);
  }
}

/// `reply`: {1, token, place, count} of acquire.lua or confirm.lua.
void Locks::confirm(Waits::iterator it, const Reply& reply) {
  const auto& wait = it->second;
  confirm(it, {.token = FencingToken{static_cast<std::uint64_t>(reply.number_at(1))},
               .count = static_cast<std::uint32_t>(std::max<std::int64_t>(1, reply.number_at(3))),
               // The answer to a later question has no place any more.
               .queue_position =
                   wait.is_queued ? wait.position : static_cast<std::size_t>(reply.number_at(2))});
}

void Locks::release_grant(const AcquireRequest& request, std::string_view member) {
  const auto& spec = *request.spec;
  router_.run({.encoded = spec.fairness == Fairness::barging
                              ? encoder_.remove(spec, member)
                              : encoder_.leave(spec, member, request.request,
                                               CommandEncoder::IfGranted::drop),
               .on_reply = [](const auto&) {}});
  router_.flush();
}

/// Either it was granted by a message that was quicker, or it was called off and the server was
/// told so before it heard the question, which had to wait for its slot: then it stands there for
/// nobody.
void Locks::release_grant_if_abandoned(const AcquireRequest& request, const Reply& reply) {
  const auto member = member_of(*request.spec, request.lease, request.request);
  const bool is_there = reply.kind == Reply::Kind::integer || reply.number_at(0) > 0;
  if (is_there && memberships_.find(request.lease, {.name = request.spec->items.front().name,
                                                    .member = member}) == nullptr) {
    release_grant(request, member);
  }
}

}  // namespace tenure::backends::redis
