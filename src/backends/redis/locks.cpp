#include "backends/redis/locks.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "sys/jitter.hpp"
#include "sys/parse_number.hpp"
#include "sys/take_until.hpp"

namespace tenure::backends::redis {
namespace {

using std::chrono::milliseconds;

/// Delay until the expiry check of a lock with this remaining TTL: up to a tenth of the TTL plus 10
/// ms later, so that the waiting clients do not check at the same time.
std::chrono::microseconds check_delay(milliseconds ttl) {
  return ttl + sys::with_jitter(ttl / 10 + milliseconds(10), sys::Jitter::full);
}

/// Number of a request or token in a message; 0 if the text is none.
std::uint64_t number_from(std::string_view text) {
  return sys::parse_number<std::uint64_t>(text).value_or(0);
}

/// Key of the membership that an acquire request begins or joins.
MemberKey member_key_of(const AcquireSpec& spec, LeaseId lease, RequestId request) {
  return {.name = spec.items.front().name, .member = member_of(spec, lease, request)};
}

/// Error of a negative result of acquire.lua or acquire_barging.lua.
Error refusal_of(const Reply& reply, std::string_view name) {
  const auto why = '"' + std::string(name) + "\": " + std::string(reply.text_at(1));
  switch (reply.number_at(0)) {
    case 0: return {.code = Errc::would_block};
    case -1: return {.code = Errc::deadlock, .detail = why};
    case -2: return {.code = Errc::invalid_argument, .detail = why};
    case -3: return {.code = Errc::resource_exhausted, .detail = why};
    default: return {.code = Errc::unavailable, .detail = why + "unknown reply"};
  }
}

/// Result of release.lua. A retry may find that the first attempt has released the hold (3).
Result<void> release_result(const Result<Command::Response>& answer) {
  if (!answer) {
    return std::unexpected(answer.error());
  }
  const auto result = answer->reply.number;
  if (result == 1 || result == 2 || (result == 3 && answer->is_retry)) {
    return {};
  }
  return answer->is_retry
             ? fail(Errc::unavailable, "connection lost during the release; the lock is free now")
             : fail(Errc::not_held);
}

}  // namespace

Locks::Locks(boost::asio::io_context& loop, CommandRouter& router, CommandEncoder encoder)
    : router_(router), encoder_(std::move(encoder)), timers_(loop) {}

// Acquire.

void Locks::acquire(AcquireRequest request, Backend::Done<Granted> done) {
  auto* const lease = memberships_.find(request.lease);
  if (lease == nullptr) {
    done(fail(Errc::lease_lost, "the lease has ended; request a new one"));
    return;
  }
  const RequestKey key{.lease = request.lease, .request = request.request};
  lease->waits.push_back(request.request);
  auto& wait = waits_[key];
  wait.member_key = member_key_of(*request.spec, request.lease, request.request);
  LeaseMemberships::add_use(*lease, wait.member_key, request.spec);
  wait.request = std::move(request);
  wait.done = std::move(done);
  send_acquire(key, wait, lease->ttl);
}

void Locks::send_acquire(const RequestKey& key) {
  auto& wait = waits_.at(key);
  send_acquire(key, wait, memberships_.find(wait.request.lease)->ttl);
}

void Locks::send_acquire(const RequestKey& key, Wait& wait, milliseconds ttl) {
  // A fresh request carries the full TTL; a queued one may be granted with the old TTL and still
  // needs a renewal.
  wait.needs_renewal = wait.needs_renewal && wait.is_queued;
  wait.is_request_pending = true;
  router_.run({.encoded = encoder_.acquire(wait.request, ttl),
               .on_reply = [this, key, spec = wait.request.spec](
                               const auto& answer) { acquire_replied(key, spec, answer); },
               .retry = wait.request.queue == Queue::wait ? Command::Retry::always
                                                          : Command::Retry::until_timeout});
}

void Locks::acquire_replied(const RequestKey& key, const std::shared_ptr<const AcquireSpec>& spec,
                            const Result<Command::Response>& answer) {
  const auto it = waits_.find(key);
  if (it == waits_.end()) {
    if (answer) {
      release_grant_if_abandoned({.lease = key.lease, .request = key.request, .spec = spec},
                                 answer->reply);
    }
    return;
  }
  auto& wait = it->second;
  wait.is_request_pending = false;
  if (!answer) {
    settle(it, std::unexpected(answer.error()));
    return;
  }
  const auto& reply = answer->reply;
  if (reply.kind == Reply::Kind::integer) {
    confirm(it, {.token = FencingToken{static_cast<std::uint64_t>(reply.number)}});
    return;
  }
  switch (reply.number_at(0)) {
    case 1: confirm(it, reply); return;
    case 2:
      queued(wait, reply);
      confirm_if_announced(key);
      return;
    case 0:
      if (wait.request.spec->fairness == Fairness::barging && !wait.is_leaving &&
          wait.request.queue == Queue::wait) {
        retry_barging_later(key, wait, reply.number_at(1));
        return;
      }
      [[fallthrough]];
    default: settle(it, std::unexpected(refusal_of(reply, wait.member_key.name)));
  }
}

void Locks::queued(Wait& wait, const Reply& reply) {
  wait.position = static_cast<std::size_t>(reply.number_at(1));
  memberships_.confirm(wait.request.lease, wait.member_key);
  if (!std::exchange(wait.is_queued, true)) {
    ++watched_[wait.member_key.name].waiting;
  }
  schedule_expiry_check(wait.member_key.name, milliseconds(reply.number_at(2)));
  if (wait.needs_renewal) {
    renew({wait.request.lease}, [](const Result<Renewed>&) {});
  }
}

void Locks::retry_barging_later(const RequestKey& key, Wait& wait, std::int64_t left_ms) {
  // The backoff delays by 1/2 to 1 of its bound. With 3/2 of the remaining TTL half of the clients
  // retry after the expiry and find the key gone.
  const auto pause =
      left_ms >= 0 ? wait.backoff.next(milliseconds(left_ms + 1) * 3 / 2) : wait.backoff.next();
  timers_.call_at(net::TimerQueue::Clock::now() + pause, [this, key] {
    const auto it = waits_.find(key);
    if (it != waits_.end() && !it->second.is_leaving) {
      send_acquire(key);
      router_.flush();
    }
  });
}

void Locks::settle(const RequestKey& key, Result<Granted> answer) {
  if (const auto it = waits_.find(key); it != waits_.end()) {
    settle(it, std::move(answer));
  }
}

void Locks::settle(Waits::iterator it, Result<Granted> answer) {
  auto wait = std::move(it->second);
  waits_.erase(it);
  if (auto* const lease = memberships_.find(wait.request.lease)) {
    std::erase(lease->waits, wait.request.request);
    if (!answer) {
      LeaseMemberships::remove_use(*lease, wait.member_key);
    } else if (auto* const membership = LeaseMemberships::find(*lease, wait.member_key)) {
      membership->is_confirmed = true;
    }
  }
  if (wait.is_queued) {
    if (const auto watched = watched_.find(wait.member_key.name);
        watched != watched_.end() && --watched->second.waiting == 0 && !watched->second.alarm) {
      watched_.erase(watched);
    }
  }
  wait.done(std::move(answer));
}

void Locks::abandon(LeaseId lease, RequestId request) {
  const RequestKey key{.lease = lease, .request = request};
  const auto it = waits_.find(key);
  if (it == waits_.end() || it->second.is_leaving) {
    return;
  }
  auto& wait = it->second;
  if (wait.request.spec->fairness == Fairness::barging) {
    // A barging request has no record before it is granted. The removal follows a request in flight
    // on the same connection and deletes what that request received.
    router_.run({.encoded = encoder_.remove(*wait.request.spec, wait.member_key.member),
                 .on_reply = [](const auto&) {}});
    settle(key, fail(Errc::cancelled));
    return;
  }
  const bool is_ready = router_.reaches(encoder_.key_of(*wait.request.spec));
  // With min_replicas a grant would need another WAIT, which the cancelled request is not worth.
  const bool is_kept = is_ready && wait.request.spec->min_replicas == 0;
  wait.is_leaving = true;
  router_.run({.encoded = encoder_.leave(
                   *wait.request.spec, wait.member_key.member, request,
                   is_kept ? CommandEncoder::IfGranted::keep : CommandEncoder::IfGranted::drop),
               .on_reply = [this, key, is_kept](const Result<Command::Response>& answer) {
                 leave_replied(key, is_kept, answer);
               }});
  // Without a connection it is unknown whether the request was granted. The caller gets its result
  // now; the leave command is sent after the reconnect.
  if (!is_ready) {
    settle(key, fail(Errc::cancelled));
  }
}

void Locks::leave_replied(const RequestKey& key, bool is_kept,
                          const Result<Command::Response>& answer) {
  const auto it = waits_.find(key);
  if (it == waits_.end()) {
    // The request was completed before, see abandon().
    return;
  }
  if (!answer) {
    settle(key, std::unexpected(answer.error()));
    return;
  }
  const bool is_granted = answer->reply.number_at(0) == 1 && is_kept;
  if (is_granted && !it->second.needs_renewal) {
    settle(key,
           Granted{.token = FencingToken{static_cast<std::uint64_t>(answer->reply.number_at(1))}});
    return;
  }
  if (is_granted) {
    release_grant(it->second);
  }
  settle(key, fail(Errc::cancelled));
}

// Confirm grants: those that a failover could lose (min_replicas), those with a TTL shorter than
// the client counts, and those that only a notification reports.

void Locks::confirm(Waits::iterator it, Granted granted) {
  const auto key = it->first;
  auto& wait = it->second;
  const auto replicas = wait.request.spec->min_replicas;
  if (replicas == 0 && !wait.needs_renewal) {
    settle(it, granted);
    return;
  }
  if (wait.is_leaving || std::exchange(wait.pending_grant, granted)) {
    // Cancelled, or a renewal is in flight.
    return;
  }
  memberships_.confirm(wait.request.lease, wait.member_key);
  // A renewal verifies the grant and writes on the connection of the WAIT. Replicas that have this
  // write also have the grant before it, whichever client's release made it.
  const std::vector<std::string> words{
      std::to_string(memberships_.find(wait.request.lease)->ttl.count()), wait.member_key.member};
  router_.run({.encoded = encoder_.renew(*wait.request.spec, words),
               .on_reply = [this, key](const auto& answer) { renewal_replied(key, answer); },
               .retry = wait.request.queue == Queue::wait ? Command::Retry::always
                                                          : Command::Retry::until_timeout,
               .replicas = replicas});
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
    // A failover lost the grant, or its TTL is over. The same request joins the queue again.
    send_acquire(key);
    router_.flush();
    return;
  }
  release_grant(wait);
  settle(key, fail(answer.error().code, "granted and released again: " + answer.error().detail));
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
    // The request was cancelled; leave_replied() releases what was granted.
    return;
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
               // A confirmed grant has no position any more; the one from joining the queue counts.
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

/// Either a notification was faster than this reply, and the request is complete; or the request
/// was cancelled, and leave.lua was executed before the acquire command, which had to wait for its
/// slot. In the second case the record has a member that no request owns.
void Locks::release_grant_if_abandoned(const AcquireRequest& request, const Reply& reply) {
  const auto member_key = member_key_of(*request.spec, request.lease, request.request);
  const bool is_there = reply.kind == Reply::Kind::integer || reply.number_at(0) > 0;
  if (is_there && memberships_.find(request.lease, member_key) == nullptr) {
    release_grant(request, member_key.member);
  }
}

// Notifications.

void Locks::handle_message(std::string_view message) {
  const auto kind = sys::take_until(message, ' ');
  const auto member = sys::take_until(message, ' ');
  if (kind == "g") {
    grant_announced(member, message);
  } else if (kind == "t") {
    hold_force_released(member, message);
  } else if (kind == "l") {
    // A TTL was shortened, so the expiry is due earlier.
    check_expiry(std::string(message));
  }
}

/// Any client that may PUBLISH on the channel can forge this message, so it grants nothing: the
/// server is asked. At most one confirm command is in flight for each request, so that a flood of
/// messages does not cause a flood of commands.
void Locks::grant_announced(std::string_view member, std::string_view rest) {
  const RequestKey key{.lease = lease_of(member),
                       .request = RequestId{number_from(sys::take_until(rest, ' '))}};
  const auto it = waits_.find(key);
  if (it == waits_.end() || it->second.is_leaving || it->second.pending_grant) {
    return;
  }
  it->second.is_announced = true;
  confirm_if_announced(key);
}

void Locks::hold_force_released(std::string_view member, std::string_view rest) {
  const auto lease = lease_of(member);
  auto requests = sys::take_until(rest, ' ');
  memberships_.forget(lease, {.name = std::string(rest), .member = std::string(member)});
  while (!requests.empty()) {
    const auto one = sys::take_until(requests, ',');
    // Skips the marks of upgrades (u) and partial releases (r), which are no acquisitions.
    if (listener_ != nullptr && !one.starts_with('u') && !one.starts_with('r')) {
      listener_->hold_force_released(lease, RequestId{number_from(one)});
    }
  }
}

// Expiry of holders.

void Locks::schedule_expiry_check(std::string_view name, milliseconds time) {
  auto& watched = watched_[std::string(name)];
  const auto when = net::TimerQueue::Clock::now() +
                    (time > milliseconds::zero() ? check_delay(time) : milliseconds::zero());
  if (watched.alarm && *watched.alarm <= when) {
    return;
  }
  watched.alarm = when;
  timers_.call_at(when, [this, name = std::string(name), when] {
    const auto it = watched_.find(name);
    if (it == watched_.end() || it->second.alarm != when) {
      // An earlier check has run.
      return;
    }
    it->second.alarm.reset();
    if (it->second.waiting == 0) {
      watched_.erase(it);
      return;
    }
    check_expiry(name);
  });
}

void Locks::check_expiry(std::string_view name) {
  router_.run(
      {.encoded = encoder_.expire(name),
       .on_reply = [this, name = std::string(name)](const Result<Command::Response>& answer) {
         const auto it = watched_.find(name);
         const auto left = answer ? answer->reply.number : 1000;
         if (it != watched_.end() && it->second.waiting > 0) {
           // -1: the record has no members although requests are waiting, so the server has lost
           // them. The next renewal notices that and sends them again.
           schedule_expiry_check(name, milliseconds(left < 0 ? 1000 : left));
         } else if (left == 0) {
           check_expiry(name);
         }
       }});
  router_.flush();
}

void Locks::resend_waits(const KeyFilter& affected) {
  std::vector<RequestKey> keys;
  for (const auto& [key, wait] : waits_) {
    if (wait.is_queued && !wait.is_leaving && !wait.pending_grant &&
        (!affected || affected(encoder_.key_of(*wait.request.spec)))) {
      keys.push_back(key);
    }
  }
  for (const auto& key : keys) {
    send_acquire(key);
  }
  router_.flush();
}

// Release.

void Locks::release(ReleaseRequest request, Backend::Done<void> done) {
  const auto member_key = member_key_of(*request.spec, request.lease, request.acquired);
  if (auto* const lease = memberships_.find(request.lease)) {
    LeaseMemberships::remove_use(*lease, member_key);
  }
  router_.run({.encoded = encoder_.release(request, member_key.member),
               .on_reply = [this, spec = std::move(request.spec), done = std::move(done)](
                               const Result<Command::Response>& answer) mutable {
                 if (answer && answer->reply.number == 2) {
                   check_expiry(spec->items.front().name);
                 }
                 done(release_result(answer));
               }});
}

void Locks::downgrade(const DowngradeRequest& request, Backend::Done<void> done) {
  const auto member = member_of(*request.spec, request.lease, request.acquired);
  const auto name = request.spec->items.front().name;
  router_.run({.encoded = encoder_.downgrade(*request.spec, member, request.acquired),
               .on_reply = [this, name, done = std::move(done)](
                               const Result<Command::Response>& answer) mutable {
                 if (!answer) {
                   done(std::unexpected(answer.error()));
                   return;
                 }
                 if (answer->reply.number == 2) {
                   check_expiry(name);
                 }
                 done(answer->reply.number > 0 ? Result<void>() : fail(Errc::not_held));
               }});
}

void Locks::holders(std::string_view name, Backend::Done<std::vector<Holder>> done) {
  constexpr std::size_t most = 1000;
  router_.run(
      {.encoded = encoder_.holders(name, most),
       .on_reply = [done = std::move(done)](const Result<Command::Response>& answer) mutable {
         if (!answer) {
           done(std::unexpected(answer.error()));
           return;
         }
         std::vector<Holder> found;
         const auto& all = answer->reply.elements;
         for (std::size_t at = 0; at + 1 < all.size(); at += 2) {
           std::string_view detail = all[at + 1]->text;
           const auto take_word = [&detail] { return sys::take_until(detail, ' '); };
           take_word();
           const auto token = number_from(take_word());
           take_word();
           take_word();
           const auto owner = sys::take_until(detail, '\n');
           found.push_back({.owner = std::string(owner),
                            .token = FencingToken{token},
                            .lease = lease_of(all[at]->text),
                            .metadata = std::string(detail)});
         }
         done(std::move(found));
       }});
}

}  // namespace tenure::backends::redis
