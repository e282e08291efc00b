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
  const auto replicas = wait.request.ask->min_replicas;
  if (replicas == 0 && !wait.is_behind) {
    settle(it, granted);
    return;
  }
  if (wait.is_leaving || std::exchange(wait.unconfirmed, granted)) {
    return;  // it is on its way out, or being confirmed
  }
  places_.confirm(wait.request.lease, wait.spot);
  // To renew it says whether it is still ours, on the connection where WAIT follows: so whoever
  // granted it, and on which connection, replicas that have the one have the other.
  const std::vector<std::string> words{
      std::to_string(places_.find(wait.request.lease)->ttl.count()), wait.spot.member.to_string()};
  Errand errand{
      .command = commands_.renew(*wait.request.ask, words),
      .answered = [this, key](const auto& answer) { confirmed(key, answer); },
      .loss = wait.request.queue == Queue::wait ? Errand::Loss::send_again : Errand::Loss::fail};
  if (replicas > 0) {
    carrier_.run_replicated(std::move(errand), replicas);
    return;
  }
  carrier_.run(std::move(errand));
  carrier_.flush();
}

void Locks::confirmed(const RequestKey& key, const Result<Errand::Answer>& answer) {
  const auto it = waits_.find(key);
  if (it == waits_.end() || it->second.is_leaving || !it->second.unconfirmed) {
    return;
  }
  auto& wait = it->second;
  const auto granted = *std::exchange(wait.unconfirmed, std::nullopt);
  if (answer && answer->reply.text == "1") {
    settle(key, granted);
    return;
  }
  if (answer) {
    // A failover forgot the grant, or its time is over: it waits again, or asks anew, by the same
    // request.
    ask(key);
    carrier_.flush();
    return;
  }
  drop(wait);
  settle(key, fail(answer.error().code, "granted, and given back: " + answer.error().detail));
}

void Locks::ask_if_woken(const RequestKey& key) {
  const auto it = waits_.find(key);
  if (it == waits_.end() || it->second.is_asking || !std::exchange(it->second.is_woken, false)) {
    return;
  }
  auto& wait = it->second;
  wait.is_asking = true;
  carrier_.run(
      {.command = commands_.confirm(*wait.request.ask, wait.spot.member, wait.request.request),
       .answered = [this, key](const Result<Errand::Answer>& answer) {
         wake_answered(key, answer);
       }});
  carrier_.flush();
}

void Locks::wake_answered(const RequestKey& key, const Result<Errand::Answer>& answer) {
  const auto it = waits_.find(key);
  if (it == waits_.end()) {
    return;  // called off, and left() gives back what was granted
  }
  it->second.is_asking = false;
  if (!answer) {
    settle(it, std::unexpected(answer.error()));
  } else if (answer->reply.number_at(0) == 1) {
    confirm(it, answer->reply);
  } else {
    ask_if_woken(key);
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

void Locks::drop(const AcquireRequest& request, std::string_view member) {
  const auto& ask = *request.ask;
  carrier_.run(
      {.command = ask.fairness == Fairness::barging
                      ? commands_.remove(ask, member)
                      : commands_.leave(ask, member, request.request, Commands::Found::drop),
       .answered = [](const auto&) {}});
  carrier_.flush();
}

/// Either it was granted by a message that was quicker, or it was called off and the server was
/// told so before it heard the question, which had to wait for its slot: then it stands there for
/// nobody.
void Locks::drop_if_unwanted(const AcquireRequest& request, const Reply& reply) {
  const auto member = member_of(*request.ask, request.lease, request.request);
  const bool is_there = reply.kind == Reply::Kind::integer || reply.number_at(0) > 0;
  if (is_there && places_.find(request.lease, {.name = request.ask->items.front().name,
                                               .member = member}) == nullptr) {
    drop(request, member);
  }
}

}  // namespace tenure::backends::redis
