#include "backends/redlock/locks.hpp"

#include <algorithm>

#include "backends/redlock/margin.hpp"
#include "sys/jitter.hpp"

namespace tenure::backends::redlock {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

/// Upper bound of the first pause between two attempts.
constexpr milliseconds pause_min{2};
/// A server has said that it is free: the others say so within this, or there is no quorum of them.
constexpr milliseconds after_first_wake_up{1};
/// Upper bound of the pause that a client makes after a release if another client waits.
constexpr milliseconds for_others{6};

/// The next word of a message, which is cut off.
std::string_view take_word(std::string_view& text) {
  const auto word = text.substr(0, text.find(' '));
  text.remove_prefix(std::min(word.size() + 1, text.size()));
  return word;
}

}  // namespace

Locks::Locks(Terms terms, const Ballots::Nodes& nodes, Ballots& ballots, net::TimerQueue& timers,
             Commands commands)
    : terms_(terms),
      retry_{.min = pause_min, .max = std::max(terms.servers.retry_delay, pause_min / 2)},
      nodes_(nodes),
      ballots_(ballots),
      timers_(timers),
      commands_(std::move(commands)) {}

// Standing in line.

void Locks::acquire(AcquireRequest request, Backend::Done<Granted> done) {
  if (auto error = refuse_at_once(request)) {
    done(std::unexpected(*std::move(error)));
    return;
  }
  const RequestKey key{.lease = request.lease, .request = request.request};
  const auto name = request.ask->items.front().name;
  leases_.at(request.lease).waits.push_back(request.request);
  waits_.insert_or_assign(key, Wait{.request = std::move(request),
                                    .done = std::move(done),
                                    .backoff = net::Backoff(retry_)});
  contests_[name].line.push_back(key);
  go_on(name);
}

std::optional<Error> Locks::refuse_at_once(const AcquireRequest& request) {
  const auto lease = leases_.find(request.lease);
  if (lease == leases_.end()) {
    return Error{.code = Errc::lease_lost, .detail = "the lease has ended; begin anew"};
  }
  const auto& name = request.ask->items.front().name;
  const bool may_wait = request.queue == Queue::wait;
  const bool is_its_own = std::ranges::any_of(lease->second.holds, [&](const auto& entry) {
    return entry.second.ask->items.front().name == name;
  });
  if (is_its_own) {
    return Error{.code = may_wait ? Errc::deadlock : Errc::would_block,
                 .detail = '"' + name + "\": the lease waits for itself"};
  }
  const auto contest = contests_.find(name);
  if (!may_wait && contest != contests_.end() && !contest->second.line.empty()) {
    return Error{.code = Errc::would_block};
  }
  return std::nullopt;
}

/// Lets the first of the line ask, unless somebody here has the lock.
void Locks::go_on(const std::string& name) {
  const auto it = contests_.find(name);
  if (it == contests_.end() || is_ending_) {
    return;
  }
  auto& contest = it->second;
  if (contest.line.empty()) {
    if (contest.held == 0) {
      contests_.erase(it);
    }
    return;
  }
  const auto key = contest.line.front();
  const bool may_wait = waits_.at(key).request.queue == Queue::wait;
  if (contest.is_asking || contest.pause != 0 || (contest.held > 0 && may_wait)) {
    return;
  }
  if (may_wait && std::exchange(contest.shall_let_others, false)) {
    pause(name, sys::with_jitter(for_others));
    return;
  }
  contest.is_asking = true;
  ask(key);
}

// Asking for votes.

void Locks::ask(const RequestKey& key) {
  auto& wait = waits_.at(key);
  const auto attempt = std::make_shared<Attempt>();
  attempt->key = key;
  attempt->ask = wait.request.ask;
  attempt->member = member_of(wait.request.lease, wait.request.request);
  attempt->ttl = leases_.at(wait.request.lease).ttl;
  attempt->slots.resize(nodes_.size());
  attempt->voted_ttl = attempt->ttl;
  attempt->fresh = sys::BootClock::now();
  attempt->proposed = propose_token(attempt->fresh);
  wait.attempt = attempt;
  const auto command = commands_.vote({.ask = *attempt->ask,
                                       .member = attempt->member,
                                       .ttl = attempt->ttl,
                                       .token = attempt->proposed,
                                       .waits = wait.request.queue == Queue::wait,
                                       .was_refused = wait.refused > 0});
  ballots_.ask(
      {.command = [this, attempt, &command](std::size_t server) -> std::optional<std::string> {
         attempt->slots[server].is_asked = true;
         return vote_for(server, command, attempt->ttl);
       },
       .judge = [this, attempt](std::size_t server,
                                const auto& answer) { return voted(*attempt, server, answer); },
       .limit = limit_for(attempt->ttl)},
      [this, attempt](const VoteCount& count) { vote_ended(attempt, count); });
}

Verdict Locks::voted(Attempt& attempt, std::size_t server, const Result<Ballots::Answer>& answer) {
  auto& node = *nodes_[server];
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
      node.learn_time(is_as_proposed ? reply.number : reply.number_at(2), now);
      slot.token =
          is_as_proposed ? attempt.proposed : static_cast<std::uint64_t>(reply.number_at(1));
      // What was asked on a connection that broke may be answered by one that has forgotten.
      slot.is_yes = !answer->is_retry;
      slot.is_young = node.is_younger_than(age_for(attempt), now);
      return slot.is_yes && !slot.is_young ? Verdict::yes : Verdict::failed;
    case 0: {
      const milliseconds left(reply.number_at(1));
      node.learn_time(reply.number_at(3), now);
      slot.is_refused = true;
      attempt.left = attempt.left < milliseconds::zero() ? left : std::min(attempt.left, left);
      attempt.ttl_told = std::max(attempt.ttl_told, milliseconds(reply.number_at(2)));
      return Verdict::no;
    }
    case -1: node.learn_time(reply.number_at(1), now); return Verdict::failed;
    default:
      slot.is_refused = true;
      ++attempt.refusals;
      attempt.refusal = Error{.code = Errc::invalid_argument,
                              .detail = node.where() + ": \"" + attempt.ask->items.front().name +
                                        "\": " + std::string(reply.text_at(1))};
      return Verdict::no;
  }
}

void Locks::vote_ended(const std::shared_ptr<Attempt>& attempt, const VoteCount& count) {
  if (!is_under_way(*attempt)) {
    return;  // called off, and undone
  }
  if (count.is_won() && has_old_quorum(*attempt) && is_in_time(*attempt)) {
    agree_on_token(attempt);
    return;
  }
  if (count.servers() - count.failed() - attempt->refusals >= count.quorum()) {
    attempt->refusal.reset();  // of a minority, which is not missed
  }
  undo(*attempt, Commands::Waits::still);
  attempt_failed(attempt, count.is_quorum_there());
}

/// Servers that may have forgotten a vote do not count, and it may be of a longer ttl than ours.
bool Locks::has_old_quorum(const Attempt& attempt) const {
  const auto age = age_for(attempt);
  const auto now = sys::BootClock::now();
  std::size_t old = 0;
  for (std::size_t server = 0; server < nodes_.size(); ++server) {
    if (attempt.slots[server].is_yes && !nodes_[server]->is_younger_than(age, now)) {
      ++old;
    }
  }
  return old >= terms_.servers.quorum();
}

milliseconds Locks::age_for(const Attempt& attempt) const {
  return terms_.servers.restart_wait.value_or(std::max(attempt.ttl, attempt.ttl_told));
}

bool Locks::is_in_time(const Attempt& attempt) const {
  return sys::BootClock::now() < attempt.fresh + attempt.ttl - drift_margin(attempt.ttl);
}

/// The largest of their tokens is ours, and a quorum has to know it before we use it: then every
/// later quorum meets it. Servers that agreed at once, as they do, know it already.
void Locks::agree_on_token(const std::shared_ptr<Attempt>& attempt) {
  std::uint64_t largest = 0;
  for (const auto& slot : attempt->slots) {
    largest = std::max(largest, slot.is_yes ? slot.token : 0);
  }
  attempt->token = FencingToken{largest};
  const auto knowing = std::ranges::count_if(attempt->slots, [&](const Attempt::Slot& slot) {
    return slot.is_yes && slot.token == largest;
  });
  if (static_cast<std::size_t>(knowing) >= terms_.servers.quorum()) {
    finish(attempt);
    return;
  }
  ballots_.ask({.command = [this, attempt](std::size_t server) -> std::optional<std::string> {
                  return attempt->slots[server].is_yes
                             ? std::optional(commands_.confirm(*attempt->ask, attempt->member,
                                                               attempt->token))
                             : std::nullopt;
                },
                .judge =
                    [](std::size_t, const Result<Ballots::Answer>& answer) {
                      return !answer                     ? Verdict::failed
                             : answer->reply.number == 1 ? Verdict::yes
                                                         : Verdict::no;
                    },
                .limit = limit_for(attempt->ttl)},
               [this, attempt](const VoteCount& count) {
                 if (!is_under_way(*attempt)) {
                   return;
                 }
                 if (count.is_won()) {
                   finish(attempt);
                   return;
                 }
                 undo(*attempt, Commands::Waits::still);
                 attempt_failed(attempt, count.is_quorum_there());
               });
}

/// Its lease may have been renewed while the servers voted, and is believed in for longer than the
/// votes last: then these are renewed before anybody is told.
void Locks::finish(const std::shared_ptr<Attempt>& attempt) {
  const auto id = attempt->key.lease;
  auto& lease = leases_.at(id);
  if (lease.touched > attempt->fresh) {
    const auto began = sys::BootClock::now();
    attempt->ttl = lease.ttl;
    extend({.ask = attempt->ask, .member = attempt->member, .token = attempt->token}, lease.ttl,
           RequestId{}, [this, attempt, began](Extended extended) {
             if (!is_under_way(*attempt)) {
               return;
             }
             attempt->fresh = began;
             if (extended == Extended::yes && is_in_time(*attempt)) {
               finish(attempt);
               return;
             }
             undo(*attempt, Commands::Waits::still);
             attempt_failed(attempt, extended == Extended::lost);
           });
    return;
  }
  const auto& name = attempt->ask->items.front().name;
  lease.holds.insert_or_assign(attempt->key.request,
                               Held{.ask = attempt->ask,
                                    .member = attempt->member,
                                    .token = attempt->token,
                                    .ttl = attempt->voted_ttl,
                                    .was_refused = waits_.at(attempt->key).last != nullptr});
  auto& contest = contests_.at(name);
  ++contest.held;
  contest.unreachable.reset();
  settle(attempt->key, Granted{.token = attempt->token});
}

// When it came to nothing.

void Locks::attempt_failed(const std::shared_ptr<Attempt>& attempt, bool is_quorum_there) {
  const auto name = attempt->ask->items.front().name;
  auto& wait = waits_.at(attempt->key);
  auto& contest = contests_.at(name);
  const auto age = age_for(*attempt);
  wait.last = std::exchange(wait.attempt, nullptr);
  ++wait.refused;
  if (attempt->refusal) {
    settle(attempt->key, std::unexpected(*attempt->refusal));
    return;
  }
  if (wait.request.queue == Queue::skip) {
    settle(attempt->key,
           is_quorum_there ? fail(Errc::would_block) : std::unexpected(unreachable(age)));
    return;
  }
  const auto now = sys::BootClock::now();
  const bool is_one_young = std::ranges::any_of(attempt->slots, &Attempt::Slot::is_young);
  if (is_quorum_there || is_one_young) {
    contest.unreachable.reset();
  } else if (!contest.unreachable) {
    contest.unreachable = now;
  } else if (now - *contest.unreachable >= terms_.patience) {
    // What it asks they would all ask in vain, one after the other.
    const auto line = std::exchange(contest.line, {});
    contest.is_asking = false;
    for (const auto& key : line) {
      settle(key, std::unexpected(unreachable(age)));
    }
    return;
  }
  contest.is_asking = false;
  const bool is_left_known = attempt->left >= milliseconds::zero();
  // Delays are between half of the bound and the bound: half of the clients ask after the expiry.
  pause(name, is_left_known ? wait.backoff.next((attempt->left + milliseconds(1)) * 3 / 2)
                            : wait.backoff.next());
}

void Locks::pause(const std::string& name, microseconds length) {
  auto& contest = contests_.at(name);
  contest.pause = ++last_pause_;
  contest.free_heard = 0;
  timers_.call_at(net::TimerQueue::Clock::now() + length, [this, name, number = contest.pause] {
    const auto it = contests_.find(name);
    if (it != contests_.end() && it->second.pause == number) {
      end_pause(name);
    }
  });
}

void Locks::end_pause(const std::string& name) {
  contests_.at(name).pause = 0;
  go_on(name);
}

void Locks::heard(std::string_view message) {
  const auto kind = take_word(message);
  if (kind == "t") {
    taken(take_word(message));
    return;
  }
  const std::string name(message);
  const auto it = contests_.find(name);
  if (kind != "f" || it == contests_.end() || it->second.pause == 0) {
    return;
  }
  if (++it->second.free_heard >= terms_.servers.quorum()) {
    end_pause(name);
  } else if (it->second.free_heard == 1) {
    timers_.call_at(net::TimerQueue::Clock::now() + after_first_wake_up,
                    [this, name, number = it->second.pause] {
                      const auto again = contests_.find(name);
                      if (again != contests_.end() && again->second.pause == number) {
                        end_pause(name);
                      }
                    });
  }
}

// The end of a wait.

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
  const auto name = wait.request.ask->items.front().name;
  const auto found = contests_.find(name);
  if (found != contests_.end() && !found->second.line.empty()) {
    auto& contest = found->second;
    if (contest.line.front() == key) {
      contest.line.pop_front();
      contest.is_asking = false;
      contest.pause = 0;
    } else {
      std::erase(contest.line, key);
    }
  }
  wait.done(std::move(answer));
  go_on(name);
}

void Locks::abandon(LeaseId lease, RequestId request) {
  const RequestKey key{.lease = lease, .request = request};
  const auto it = waits_.find(key);
  if (it == waits_.end()) {
    return;
  }
  leave(it->second);
  settle(key, fail(Errc::cancelled));
}

/// Nothing is left of it on any server.
void Locks::leave(const Wait& wait) {
  if (const auto& attempt = wait.attempt ? wait.attempt : wait.last) {
    undo(*attempt, Commands::Waits::no_longer);
  }
}

/// Behind the vote on the same connection, and to those that have not answered, too: so nothing is
/// left of it anywhere.
void Locks::undo(const Attempt& attempt, Commands::Waits waits) {
  const auto command = commands_.undo(*attempt.ask, attempt.member, waits);
  ballots_.ask({.command = [&](std::size_t server) -> std::optional<std::string> {
                  const auto& slot = attempt.slots[server];
                  const bool may_have = slot.is_asked && !slot.is_refused;
                  return may_have || (slot.is_asked && waits == Commands::Waits::no_longer)
                             ? std::optional(command)
                             : std::nullopt;
                },
                .judge = [](std::size_t, const auto&) { return Verdict::yes; },
                .limit = limit_for(attempt.ttl),
                .whom = Ballots::Question::Whom::everybody},
               [](const VoteCount&) {});
}

bool Locks::is_under_way(const Attempt& attempt) const {
  const auto it = waits_.find(attempt.key);
  return it != waits_.end() && it->second.attempt.get() == &attempt;
}

// What the servers are asked.

milliseconds Locks::limit_for(milliseconds ttl) const {
  return std::min(terms_.servers.node_timeout, std::max(ttl / 10, milliseconds(1)));
}

/// By the clock of the server that is ahead: near enough to all of theirs, and beyond what they
/// gave to anybody before, so that all agree at once.
std::uint64_t Locks::propose_token(sys::BootTime now) const {
  std::int64_t latest = 0;
  for (const auto& node : nodes_) {
    latest = std::max(latest, node->micros(now).value_or(0));
  }
  return static_cast<std::uint64_t>(latest);
}

std::string Locks::vote_for(std::size_t server, std::string command, milliseconds ttl) const {
  const auto micros = nodes_[server]->micros(sys::BootClock::now());
  if (micros) {
    Commands::set_not_after(command, *micros + microseconds(2 * limit_for(ttl)).count());
  }
  return command;
}

Error Locks::unreachable(milliseconds age) const {
  const auto now = sys::BootClock::now();
  std::string why;
  for (const auto& node : nodes_) {
    std::string one;
    if (!node->answers()) {
      one = node->fault() && !node->is_ready() ? node->fault()->detail
                                               : node->where() + ": it does not answer";
    } else if (node->is_younger_than(age, now)) {
      one = node->where() + ": it has not run for long";
    }
    if (!one.empty()) {
      why += (why.empty() ? "" : "; ") + one;
    }
  }
  return {.code = Errc::unavailable,
          .detail = "no quorum of " + std::to_string(terms_.servers.quorum()) + " of " +
                    std::to_string(nodes_.size()) + " servers: " + why};
}

}  // namespace tenure::backends::redlock
