#include "backends/redlock/locks.hpp"

#include <algorithm>

#include "backends/redlock/drift_margin.hpp"
#include "sys/jitter.hpp"
#include "sys/take_until.hpp"

namespace tenure::backends::redlock {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

/// Bound of the first delay between two attempts.
constexpr milliseconds pause_min{2};
/// Delay of the next attempt after the first release notice, within which the other servers'
/// notices usually arrive. With the notices of a quorum the attempt starts at once.
constexpr milliseconds quorum_notice_delay{1};
/// Longest delay of a client's next attempt after its release if another client waits, so that the
/// releasing client does not win the race for the lock again.
constexpr milliseconds yield_delay_max{6};

}  // namespace

Locks::Locks(Options options, const QuorumClient::Voters& voters, QuorumClient& quorum,
             net::TimerQueue& timers, CommandEncoder encoder)
    : options_(options),
      retry_{.min = pause_min, .max = std::max(options.deployment.retry_delay, pause_min / 2)},
      voters_(voters),
      quorum_(quorum),
      timers_(timers),
      encoder_(std::move(encoder)) {}

// Local queue.

void Locks::acquire(AcquireRequest request, Backend::Done<Granted> done) {
  if (auto error = immediate_error(request)) {
    done(std::unexpected(*std::move(error)));
    return;
  }
  const RequestKey key{.lease = request.lease, .request = request.request};
  const auto name = request.spec->items.front().name;
  leases_.at(request.lease).waits.push_back(request.request);
  waits_.insert_or_assign(key, Wait{.request = std::move(request),
                                    .done = std::move(done),
                                    .backoff = net::Backoff(retry_)});
  queues_[name].waiters.push_back(key);
  start_next_attempt(name);
}

std::optional<Error> Locks::immediate_error(const AcquireRequest& request) {
  const auto lease = leases_.find(request.lease);
  if (lease == leases_.end()) {
    return Error{.code = Errc::lease_lost, .detail = "the lease has ended; request a new one"};
  }
  const auto& name = request.spec->items.front().name;
  const bool may_wait = request.queue == Queue::wait;
  const bool is_its_own = std::ranges::any_of(lease->second.holds, [&](const auto& entry) {
    return entry.second.spec->items.front().name == name;
  });
  if (is_its_own) {
    return Error{.code = may_wait ? Errc::deadlock : Errc::would_block,
                 .detail = '"' + name + "\": the lease holds the lock already"};
  }
  const auto queue = queues_.find(name);
  if (!may_wait && queue != queues_.end() && !queue->second.waiters.empty()) {
    return Error{.code = Errc::would_block};
  }
  return std::nullopt;
}

void Locks::start_next_attempt(const std::string& name) {
  const auto it = queues_.find(name);
  if (it == queues_.end() || is_ending_) {
    return;
  }
  auto& queue = it->second;
  if (queue.waiters.empty()) {
    if (queue.held == 0) {
      queues_.erase(it);
    }
    return;
  }
  const auto key = queue.waiters.front();
  const bool may_wait = waits_.at(key).request.queue == Queue::wait;
  if (queue.has_attempt || queue.pause != 0 || (queue.held > 0 && may_wait)) {
    return;
  }
  if (may_wait && std::exchange(queue.yields_to_others, false)) {
    pause(name, sys::with_jitter(yield_delay_max));
    return;
  }
  queue.has_attempt = true;
  start_attempt(key);
}

// Attempts.

void Locks::start_attempt(const RequestKey& key) {
  auto& wait = waits_.at(key);
  const auto attempt = std::make_shared<Attempt>();
  attempt->key = key;
  attempt->spec = wait.request.spec;
  attempt->member = member_of(wait.request.lease, wait.request.request);
  attempt->ttl = leases_.at(wait.request.lease).ttl;
  attempt->slots.resize(voters_.size());
  attempt->voted_ttl = attempt->ttl;
  attempt->valid_from = sys::BootClock::now();
  attempt->proposed = propose_token(attempt->valid_from);
  wait.attempt = attempt;
  const auto command = encoder_.vote({.spec = *attempt->spec,
                                      .member = attempt->member,
                                      .ttl = attempt->ttl,
                                      .token = attempt->proposed,
                                      .waits = wait.request.queue == Queue::wait,
                                      .was_refused = wait.refused > 0});
  quorum_.call(
      {.command = [this, attempt, &command](std::size_t server) -> std::optional<std::string> {
         attempt->slots[server].is_asked = true;
         return vote_command_for(server, command, attempt->ttl);
       },
       .classify = [this, attempt](
                       std::size_t server,
                       const auto& answer) { return handle_vote(*attempt, server, answer); },
       .timeout = timeout_for(attempt->ttl)},
      [this, attempt](const VoteTally& count) { voting_done(attempt, count); });
}

Verdict Locks::handle_vote(Attempt& attempt, std::size_t server,
                           const Result<QuorumClient::Response>& answer) {
  auto& voter = *voters_[server];
  auto& slot = attempt.slots[server];
  if (!answer && answer.error() == Errc::unavailable) {
    return Verdict::failed;
  }
  if (!answer) {
    slot.is_refused = true;
    attempt.refusal = answer.error();
    ++attempt.refusals;
    return Verdict::no;
  }
  const auto& reply = answer->reply;
  const auto now = sys::BootClock::now();
  const bool is_as_proposed = reply.kind == redis::Reply::Kind::integer;
  switch (is_as_proposed ? 1 : reply.number_at(0)) {
    case 1:
      voter.update_clock(is_as_proposed ? reply.number : reply.number_at(2), now);
      slot.token =
          is_as_proposed ? attempt.proposed : static_cast<std::uint64_t>(reply.number_at(1));
      // A vote that was requested on a broken connection may come from a server that restarted in
      // between and lost other votes.
      slot.is_yes = !answer->is_retry;
      slot.is_recently_started = voter.is_younger_than(min_uptime_for(attempt), now);
      return slot.is_yes && !slot.is_recently_started ? Verdict::yes : Verdict::failed;
    case 0: {
      const milliseconds left(reply.number_at(1));
      voter.update_clock(reply.number_at(3), now);
      slot.is_refused = true;
      attempt.remaining =
          attempt.remaining < milliseconds::zero() ? left : std::min(attempt.remaining, left);
      attempt.reported_ttl = std::max(attempt.reported_ttl, milliseconds(reply.number_at(2)));
      return Verdict::no;
    }
    case -1: voter.update_clock(reply.number_at(1), now); return Verdict::failed;
    default:
      slot.is_refused = true;
      ++attempt.refusals;
      attempt.refusal = Error{.code = Errc::invalid_argument,
                              .detail = voter.where() + ": \"" + attempt.spec->items.front().name +
                                        "\": " + std::string(reply.text_at(1))};
      return Verdict::no;
  }
}

void Locks::voting_done(const std::shared_ptr<Attempt>& attempt, const VoteTally& count) {
  if (!is_current(*attempt)) {
    // Cancelled, and its votes are withdrawn.
    return;
  }
  if (count.is_won() && has_trusted_quorum(*attempt) && is_in_time(*attempt)) {
    agree_on_token(attempt);
    return;
  }
  if (count.servers() - count.failed() - attempt->refusals >= count.quorum()) {
    // A minority refused, and the other servers decided without it.
    attempt->refusal.reset();
  }
  withdraw_votes(*attempt, CommandEncoder::Waits::still);
  attempt_failed(attempt, count.is_quorum_reachable());
}

/// Counted again after the votes, because a reply may have reported a longer TTL and so require a
/// longer uptime.
bool Locks::has_trusted_quorum(const Attempt& attempt) const {
  const auto age = min_uptime_for(attempt);
  const auto now = sys::BootClock::now();
  std::size_t old = 0;
  for (std::size_t server = 0; server < voters_.size(); ++server) {
    if (attempt.slots[server].is_yes && !voters_[server]->is_younger_than(age, now)) {
      ++old;
    }
  }
  return old >= options_.deployment.quorum();
}

milliseconds Locks::min_uptime_for(const Attempt& attempt) const {
  return options_.deployment.restart_wait.value_or(std::max(attempt.ttl, attempt.reported_ttl));
}

bool Locks::is_in_time(const Attempt& attempt) const {
  return sys::BootClock::now() < attempt.valid_from + attempt.ttl - drift_margin(attempt.ttl);
}

/// The largest token of the voters is chosen. A quorum must store it before it is used, so that
/// every later quorum contains a server that knows it. Usually all voters accept the proposed
/// token, and no further call is needed.
void Locks::agree_on_token(const std::shared_ptr<Attempt>& attempt) {
  std::uint64_t largest = 0;
  for (const auto& slot : attempt->slots) {
    largest = std::max(largest, slot.is_yes ? slot.token : 0);
  }
  attempt->token = FencingToken{largest};
  const auto knowing = std::ranges::count_if(attempt->slots, [&](const Attempt::Slot& slot) {
    return slot.is_yes && slot.token == largest;
  });
  if (static_cast<std::size_t>(knowing) >= options_.deployment.quorum()) {
    grant(attempt);
    return;
  }
  quorum_.call({.command = [this, attempt](std::size_t server) -> std::optional<std::string> {
                  return attempt->slots[server].is_yes
                             ? std::optional(encoder_.write_back(*attempt->spec, attempt->member,
                                                                 attempt->token))
                             : std::nullopt;
                },
                .classify =
                    [](std::size_t, const Result<QuorumClient::Response>& answer) {
                      return !answer                     ? Verdict::failed
                             : answer->reply.number == 1 ? Verdict::yes
                                                         : Verdict::no;
                    },
                .timeout = timeout_for(attempt->ttl)},
               [this, attempt](const VoteTally& count) {
                 if (!is_current(*attempt)) {
                   return;
                 }
                 if (count.is_won()) {
                   grant(attempt);
                   return;
                 }
                 withdraw_votes(*attempt, CommandEncoder::Waits::still);
                 attempt_failed(attempt, count.is_quorum_reachable());
               });
}

/// If the lease was renewed during the vote, the client counts it for longer than the votes last.
/// The votes are then extended before the grant is reported.
void Locks::grant(const std::shared_ptr<Attempt>& attempt) {
  const auto id = attempt->key.lease;
  auto& lease = leases_.at(id);
  if (lease.touched > attempt->valid_from) {
    const auto began = sys::BootClock::now();
    attempt->ttl = lease.ttl;
    extend({.spec = attempt->spec, .member = attempt->member, .token = attempt->token}, lease.ttl,
           RequestId{}, [this, attempt, began](ExtendResult extended) {
             if (!is_current(*attempt)) {
               return;
             }
             attempt->valid_from = began;
             if (extended == ExtendResult::yes && is_in_time(*attempt)) {
               grant(attempt);
               return;
             }
             withdraw_votes(*attempt, CommandEncoder::Waits::still);
             attempt_failed(attempt, extended == ExtendResult::lost);
           });
    return;
  }
  const auto& name = attempt->spec->items.front().name;
  lease.holds.insert_or_assign(attempt->key.request,
                               Held{.spec = attempt->spec,
                                    .member = attempt->member,
                                    .token = attempt->token,
                                    .ttl = attempt->voted_ttl,
                                    .was_refused = waits_.at(attempt->key).last != nullptr});
  auto& queue = queues_.at(name);
  ++queue.held;
  queue.no_quorum_since.reset();
  settle(attempt->key, Granted{.token = attempt->token});
}

// Failed attempts.

void Locks::attempt_failed(const std::shared_ptr<Attempt>& attempt, bool is_quorum_reachable) {
  const auto name = attempt->spec->items.front().name;
  auto& wait = waits_.at(attempt->key);
  auto& queue = queues_.at(name);
  const auto age = min_uptime_for(*attempt);
  wait.last = std::exchange(wait.attempt, nullptr);
  ++wait.refused;
  if (attempt->refusal) {
    settle(attempt->key, std::unexpected(*attempt->refusal));
    return;
  }
  if (wait.request.queue == Queue::skip) {
    settle(attempt->key,
           is_quorum_reachable ? fail(Errc::would_block) : std::unexpected(no_quorum_error(age)));
    return;
  }
  const auto now = sys::BootClock::now();
  const bool is_one_recently_started =
      std::ranges::any_of(attempt->slots, &Attempt::Slot::is_recently_started);
  if (is_quorum_reachable || is_one_recently_started) {
    queue.no_quorum_since.reset();
  } else if (!queue.no_quorum_since) {
    queue.no_quorum_since = now;
  } else if (now - *queue.no_quorum_since >= options_.timeout) {
    const auto waiters = std::exchange(queue.waiters, {});
    queue.has_attempt = false;
    for (const auto& key : waiters) {
      settle(key, std::unexpected(no_quorum_error(age)));
    }
    return;
  }
  queue.has_attempt = false;
  const bool is_remaining_known = attempt->remaining >= milliseconds::zero();
  // The backoff delays by 1/2 to 1 of its bound. With 3/2 of the remaining TTL half of the clients
  // retry after the expiry and find the vote free.
  pause(name, is_remaining_known ? wait.backoff.next((attempt->remaining + milliseconds(1)) * 3 / 2)
                                 : wait.backoff.next());
}

void Locks::pause(const std::string& name, microseconds length) {
  auto& queue = queues_.at(name);
  queue.pause = ++last_pause_;
  queue.release_notices = 0;
  timers_.call_at(net::TimerQueue::Clock::now() + length, [this, name, number = queue.pause] {
    const auto it = queues_.find(name);
    if (it != queues_.end() && it->second.pause == number) {
      end_pause(name);
    }
  });
}

void Locks::end_pause(const std::string& name) {
  queues_.at(name).pause = 0;
  start_next_attempt(name);
}

void Locks::handle_message(std::string_view message) {
  const auto kind = sys::take_until(message, ' ');
  if (kind == "t") {
    hold_force_released(sys::take_until(message, ' '));
    return;
  }
  const std::string name(message);
  const auto it = queues_.find(name);
  if (kind != "f" || it == queues_.end() || it->second.pause == 0) {
    return;
  }
  if (++it->second.release_notices >= options_.deployment.quorum()) {
    end_pause(name);
  } else if (it->second.release_notices == 1) {
    timers_.call_at(net::TimerQueue::Clock::now() + quorum_notice_delay,
                    [this, name, number = it->second.pause] {
                      const auto again = queues_.find(name);
                      if (again != queues_.end() && again->second.pause == number) {
                        end_pause(name);
                      }
                    });
  }
}

// End of a wait.

void Locks::settle(const RequestKey& key, Result<Granted> answer) {
  const auto it = waits_.find(key);
  if (it == waits_.end()) {
    return;
  }
  auto wait = std::move(it->second);
  waits_.erase(it);
  if (const auto lease = leases_.find(wait.request.lease); lease != leases_.end()) {
    std::erase(lease->second.waits, wait.request.request);
  }
  const auto name = wait.request.spec->items.front().name;
  const auto found = queues_.find(name);
  if (found != queues_.end() && !found->second.waiters.empty()) {
    auto& queue = found->second;
    if (queue.waiters.front() == key) {
      queue.waiters.pop_front();
      queue.has_attempt = false;
      queue.pause = 0;
    } else {
      std::erase(queue.waiters, key);
    }
  }
  wait.done(std::move(answer));
  start_next_attempt(name);
}

void Locks::abandon(LeaseId lease, RequestId request) {
  const RequestKey key{.lease = lease, .request = request};
  const auto it = waits_.find(key);
  if (it == waits_.end()) {
    return;
  }
  withdraw_wait(it->second);
  settle(key, fail(Errc::cancelled));
}

void Locks::withdraw_wait(const Wait& wait) {
  if (const auto& attempt = wait.attempt ? wait.attempt : wait.last) {
    withdraw_votes(*attempt, CommandEncoder::Waits::no_longer);
  }
}

/// Sent to all servers that may have voted, also to those without a reply: the command follows the
/// vote on the same connection, so that no server keeps the vote.
void Locks::withdraw_votes(const Attempt& attempt, CommandEncoder::Waits waits) {
  const auto command = encoder_.withdraw(*attempt.spec, attempt.member, waits);
  quorum_.call({.command = [&](std::size_t server) -> std::optional<std::string> {
                  const auto& slot = attempt.slots[server];
                  const bool may_have = slot.is_asked && !slot.is_refused;
                  return may_have || (slot.is_asked && waits == CommandEncoder::Waits::no_longer)
                             ? std::optional(command)
                             : std::nullopt;
                },
                .classify = [](std::size_t, const auto&) { return Verdict::yes; },
                .timeout = timeout_for(attempt.ttl),
                .recipients = QuorumClient::Call::Recipients::all},
               [](const VoteTally&) {});
}

bool Locks::is_current(const Attempt& attempt) const {
  const auto it = waits_.find(attempt.key);
  return it != waits_.end() && it->second.attempt.get() == &attempt;
}

/// At most a tenth of the TTL, so that a won attempt leaves most of the TTL to the holder.
milliseconds Locks::timeout_for(milliseconds ttl) const {
  return std::min(options_.deployment.node_timeout, std::max(ttl / 10, milliseconds(1)));
}

/// Proposes the time of the server whose clock is ahead: plausible for all servers, and larger than
/// their earlier tokens, so that all of them accept it at once.
std::uint64_t Locks::propose_token(sys::BootTime now) const {
  std::int64_t latest = 0;
  for (const auto& voter : voters_) {
    latest = std::max(latest, voter->server_micros(now).value_or(0));
  }
  return static_cast<std::uint64_t>(latest);
}

/// The deadline is twice the timeout of the call: a vote that arrives later belongs to an attempt
/// that has ended.
std::string Locks::vote_command_for(std::size_t server, std::string command,
                                    milliseconds ttl) const {
  const auto micros = voters_[server]->server_micros(sys::BootClock::now());
  if (micros) {
    CommandEncoder::set_not_after(command, *micros + microseconds(2 * timeout_for(ttl)).count());
  }
  return command;
}

Error Locks::no_quorum_error(milliseconds age) const {
  const auto now = sys::BootClock::now();
  std::string why;
  for (const auto& voter : voters_) {
    std::string one;
    if (!voter->is_responsive()) {
      one = voter->last_error() && !voter->is_ready() ? voter->last_error()->detail
                                                      : voter->where() + ": no reply";
    } else if (voter->is_younger_than(age, now)) {
      one = voter->where() + ": started too recently to vote (restart_wait)";
    }
    if (!one.empty()) {
      why += (why.empty() ? "" : "; ") + one;
    }
  }
  return {.code = Errc::unavailable,
          .detail = "no quorum of " + std::to_string(options_.deployment.quorum()) + " of " +
                    std::to_string(voters_.size()) + " servers: " + why};
}

}  // namespace tenure::backends::redlock
