#include "backends/redis/locks.hpp"

#include <algorithm>
#include <charconv>

#include <absl/strings/string_view.h>

#include "sys/jitter.hpp"

namespace tenure::backends::redis {
namespace {

using std::chrono::milliseconds;

/// Delay until a lock is checked that expires after `ttl`: up to a tenth later, so that the clients
/// that wait for it do not check together.
std::chrono::microseconds check_delay(milliseconds ttl) {
  return ttl + sys::with_jitter(ttl / 10 + milliseconds(10), sys::Jitter::full);
}

/// The next word of a message, which is cut off.
std::string_view take_word(std::string_view& text) {
  const auto word = text.substr(0, text.find(' '));
  text.remove_prefix(std::min(word.size() + 1, text.size()));
  return word;
}

std::uint64_t number_from(std::string_view text) {
  std::uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

/// As the map looks for it, without an allocation.
absl::string_view key_in(std::string_view name) {
  return {name.data(), name.size()};
}

Error refusal_of(const Reply& reply, std::string_view name) {
  const auto why = '"' + std::string(name) + "\": " + std::string(reply.text_at(1));
  switch (reply.number_at(0)) {
    case 0: return {.code = Errc::would_block};
    case -1: return {.code = Errc::deadlock, .detail = why};
    case -2: return {.code = Errc::invalid_argument, .detail = why};
    case -3: return {.code = Errc::resource_exhausted, .detail = why};
    default: return {.code = Errc::unavailable, .detail = why + "an answer that nobody knows"};
  }
}

/// What a reply of release.lua means.
Result<void> release_result(const Result<Command::Response>& answer) {
  if (!answer) {
    return std::unexpected(answer.error());
  }
  const auto result = answer->reply.number;
  if (result == 1 || result == 2 || (result == 3 && answer->is_retry)) {
    return {};
  }
  return answer->is_retry ? fail(Errc::unavailable,
                                 "the connection broke while it was given back; it is free now")
                          : fail(Errc::not_held);
}

}  // namespace

Locks::Locks(boost::asio::io_context& loop, CommandRouter& router, CommandEncoder encoder)
    : router_(router), encoder_(std::move(encoder)), timers_(loop) {}

// Acquiring.

void Locks::acquire(AcquireRequest request, Backend::Done<Granted> done) {
  auto* const lease = memberships_.find(request.lease);
  if (lease == nullptr) {
    done(fail(Errc::lease_lost, "the lease has ended; begin anew"));
    return;
  }
  const RequestKey key{.lease = request.lease, .request = request.request};
  lease->waits.push_back(request.request);
  auto& wait = waits_[key];
  wait.member_key = {.name = request.spec->items.front().name,
                     .member = member_of(*request.spec, request.lease, request.request)};
  LeaseMemberships::add_use(*lease, wait.member_key.member, request.spec);
  wait.request = std::move(request);
  wait.done = std::move(done);
  send_acquire(key, wait, lease->ttl);
}

void Locks::send_acquire(const RequestKey& key) {
  auto& wait = waits_.at(key);
  send_acquire(key, wait, memberships_.find(wait.request.lease)->ttl);
}

void Locks::send_acquire(const RequestKey& key, Wait& wait, milliseconds ttl) {
  // Whole again, unless it has a place already, which may be granted before this arrives.
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
    ++watched_[std::string(wait.member_key.name)].waiting;
  }
  schedule_expiry_check(wait.member_key.name, milliseconds(reply.number_at(2)));
  if (wait.needs_renewal) {
    renew({wait.request.lease}, [](const Result<Renewed>&) {});
  }
}

void Locks::retry_barging_later(const RequestKey& key, Wait& wait, std::int64_t left_ms) {
  // Delays are between half of the bound and the bound: half of the clients ask after the expiry.
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
    if (const auto watched = watched_.find(key_in(wait.member_key.name));
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
    // It stands nowhere. One that is on its way is given back if it comes true.
    router_.run({.encoded = encoder_.remove(*wait.request.spec, wait.member_key.member),
                 .on_reply = [](const auto&) {}});
    settle(key, fail(Errc::cancelled));
    return;
  }
  const bool is_ready = router_.reaches(encoder_.key_of(*wait.request.spec));
  // What replicas would have to have first is not worth another wait.
  const bool is_kept = is_ready && wait.request.spec->min_replicas == 0;
  wait.is_leaving = true;
  router_.run({.encoded = encoder_.leave(
                   *wait.request.spec, wait.member_key.member, request,
                   is_kept ? CommandEncoder::IfGranted::keep : CommandEncoder::IfGranted::drop),
               .on_reply = [this, key, is_kept](const Result<Command::Response>& answer) {
                 leave_replied(key, is_kept, answer);
               }});
  if (!is_ready) {
    // Nobody is there to say whether it was granted meanwhile. Told now, and cleaned up later.
    settle(key, fail(Errc::cancelled));
  }
}

void Locks::leave_replied(const RequestKey& key, bool is_kept,
                          const Result<Command::Response>& answer) {
  const auto it = waits_.find(key);
  if (it == waits_.end()) {
    return;  // told before
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

// What the server says unasked.

void Locks::handle_message(std::string_view message) {
  const auto kind = take_word(message);
  const auto member = take_word(message);
  if (kind == "g") {
    grant_announced(member, message);
  } else if (kind == "t") {
    hold_force_released(member, message);
  } else if (kind == "l") {
    // Somebody's time is over sooner than it was.
    check_expiry(std::string(message));
  }
}

/// Any client that may PUBLISH on the channel can send this message, so it grants nothing: the
/// server is asked. One question at a time, so that a flood of messages is not a flood of
/// questions.
void Locks::grant_announced(std::string_view member, std::string_view rest) {
  const RequestKey key{.lease = lease_of(member),
                       .request = RequestId{number_from(take_word(rest))}};
  const auto it = waits_.find(key);
  if (it == waits_.end() || it->second.is_leaving || it->second.pending_grant) {
    return;
  }
  it->second.is_announced = true;
  confirm_if_announced(key);
}

void Locks::hold_force_released(std::string_view member, std::string_view rest) {
  const auto lease = lease_of(member);
  auto requests = take_word(rest);
  const std::string name(rest);
  const MemberKey member_key{.name = name, .member = MemberId(member)};
  memberships_.forget(lease, member_key);
  while (!requests.empty()) {
    const auto one = requests.substr(0, requests.find(','));
    requests.remove_prefix(std::min(one.size() + 1, requests.size()));
    if (listener_ != nullptr && !one.starts_with('u') && !one.starts_with('r')) {
      listener_->hold_force_released(lease, RequestId{number_from(one)});
    }
  }
}

// When nobody says anything.

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
      return;  // an earlier one has rung
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
           // Nobody there, though we wait: the server has forgotten us.
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

// Giving back.

void Locks::release(ReleaseRequest request, Backend::Done<void> done) {
  const auto member = member_of(*request.spec, request.lease, request.acquired);
  if (auto* const lease = memberships_.find(request.lease)) {
    LeaseMemberships::remove_use(*lease,
                                 {.name = request.spec->items.front().name, .member = member});
  }
  router_.run({.encoded = encoder_.release(request, member),
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
           take_word(detail);
           const auto token = number_from(take_word(detail));
           take_word(detail);
           take_word(detail);
           const auto line = std::min(detail.find('\n'), detail.size());
           found.push_back(
               {.owner = std::string(detail.substr(0, line)),
                .token = FencingToken{token},
                .lease = lease_of(all[at]->text),
                .metadata = std::string(detail.substr(std::min(line + 1, detail.size())))});
         }
         done(std::move(found));
       }});
}

}  // namespace tenure::backends::redis
