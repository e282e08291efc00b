#include "core/step.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <string>
#include <utility>

namespace tenure::core {
namespace {

// Bounds of a stamp: sums with a ttl or a count cannot overflow 64 bits.
constexpr Revision last_revision{1ULL << 62};
constexpr ClusterTime last_time{1LL << 61};

/// Maximum number of deadlocks that one step resolves, because each victim costs a search.
constexpr std::size_t deadlocks_per_step_max = 16;

std::uint64_t search_visits_max(ClusterVersion version, std::uint64_t visits_left) {
  return version < version_2 ? std::numeric_limits<std::uint64_t>::max()
                             : std::min(deadlock_visits_per_command_max, visits_left);
}

}  // namespace

Step::Step(State& state, std::uint64_t& visits_left)
    : state_(state),
      search_visits_max_(search_visits_max(state.version, visits_left)),
      visits_left_(visits_left) {}

// Time and revision never go back, even if a stamp does: a new leader may have a slower clock, and
// a token must never be assigned twice. All leases that expire in this step share one revision.
void Step::begin(const Stamp& stamp) {
  state_.now = std::clamp(stamp.time, state_.now, std::max(state_.now, last_time));
  const auto floor = std::min(stamp.revision, last_revision);
  if (floor > state_.revision) {
    // Expiries take their revisions beyond it too, because they may lead to grants.
    state_.revision = Revision{floor.get() - 1};
  }
  const bool was_restoring = is_restoring();
  auto expired = end_restoration();
  std::ranges::copy(state_.leases.expired(state_.now), std::back_inserter(expired));
  if (!expired.empty() || was_restoring != is_restoring()) {
    std::ranges::sort(expired);
    const auto repeated = std::ranges::unique(expired);
    expired.erase(repeated.begin(), repeated.end());
    take_revision();
    visits_.add(expired.size());
    end_leases(expired, EventType::expired);
  }
  take_revision();
}

// Grants happen here, after the command has been applied as a whole, so that a command never grants
// a wait that it is about to end.
Applied Step::finish(Outcome outcome) {
  process_touched();
  for (const auto id : changed_) {
    if (auto* lease = state_.leases.edit(id)) {
      state_.leases.set_bytes(*lease, count_bytes(state_, *lease));
    }
  }
  state_.events.trim(state_.limits.events_max);
  applied_.revision = state_.revision;
  applied_.time = state_.now;
  applied_.outcome = std::move(outcome);
  applied_.visits = visits_.total();
  applied_.search_visits = search_visits_;
  visits_left_ -= std::min(visits_left_, search_visits_);
  return std::move(applied_);
}

// Resources are collected and not processed at once: several releases in one step admit the waiters
// of a resource in one pass, in queue order.
void Step::touch(std::span<const Item> items) {
  for (const auto& item : items) {
    const auto* lock = state_.locks.find(item.resource_view());
    if (lock == nullptr || lock->queue().empty()) {
      continue;  // no waiter to grant, and this step adds a wait only after process_touched()
    }
    auto& ranges = touched_[item.resource()];
    if (const auto* keys = std::get_if<Keys>(&item.claim)) {
      ranges.push_back(keys->range);
    }
  }
}

// In name order, not in the order of release, so that all members grant in the same order. A grant
// touches no further resource; the end of a deadlock may.
void Step::process_touched() {
  if (is_restoring()) {
    touched_
        .clear();  // nothing is granted now; end_restoration() touches the resources of all waits
  }
  while (!touched_.empty() || suspect_) {
    if (!touched_.empty()) {
      const auto freed = std::exchange(touched_, {});
      for (const auto ticket : admissible_waits(state_.locks, freed, visits_)) {
        grant_waiting(ticket);
      }
    } else {
      end_deadlocks(*std::exchange(suspect_, std::nullopt));
    }
  }
}

void Step::grant_waiting(Revision ticket) {
  const auto wait = *state_.locks.find(ticket);
  take_revision();
  // Adds the hold before it removes the wait: a free lock in between would lose its record.
  const auto granted = grant(*state_.leases.edit(wait.lease), wait);
  remove_wait(ticket);
  applied_.notices.push_back({.lease = wait.lease, .request = wait.request, .end = granted});
}

void Step::add_wait(const Wait& wait) {
  visits_.add(wait.items.size());
  state_.leases.count_wait(wait.lease);
  state_.locks.add(wait);
}

Wait Step::remove_wait(Revision ticket) {
  auto wait = state_.locks.remove(ticket);
  visits_.add(wait.items.size());
  state_.leases.uncount_wait(wait.lease);
  return wait;
}

// Bounded by the visits left to this command, but never below deadlock_visits_always.
std::optional<std::vector<Edge>> Step::search_cycle(LeaseId lease) {
  const auto before = visits_.total();
  const auto left = search_visits_max_ - std::min(search_visits_max_, search_visits_);
  auto cycle = find_cycle(state_.locks, lease, visits_, std::max(left, deadlock_visits_always));
  search_visits_ += visits_.total() - before;
  return cycle;
}

// Resolves one deadlock and searches again, because one upgrade can close several cycles.
void Step::end_deadlocks(LeaseId lease) {
  const bool are_too_many = is_at_least(version_2) && deadlocks_ >= deadlocks_per_step_max;
  const auto cycle = are_too_many ? std::nullopt : search_cycle(lease);
  if (!cycle) {
    // All these cycles lead through waits of this lease, so ending its waits breaks them.
    const auto tickets = state_.locks.owned(lease).waits;
    for (const auto ticket : tickets) {
      end_wait(ticket,
               {.error = {.code = Errc::resource_exhausted,
                          .detail = "the upgrade of this lease closed too many cycles of waits"}},
               EventType::deadlock);
    }
    return;
  }
  if (cycle->empty()) {
    return;
  }
  // The victim is the youngest wait. Its error lists the cycle from its own edge on.
  auto edges = *cycle;
  std::ranges::rotate(edges, std::ranges::max_element(edges, {}, &Edge::ticket));
  const auto victim = edges.front().ticket;
  end_wait(victim, {.error = {.code = Errc::deadlock}, .cycle = describe(state_.locks, edges)},
           EventType::deadlock);
  ++deadlocks_;
  suspect_ = lease;
}

// The refusal is remembered, so that a retry of the request gets the same answer and is not queued
// again.
void Step::end_wait(Revision ticket, Refused refused, EventType why) {
  const auto wait = remove_wait(ticket);
  touch(wait.items);
  for (const auto& item : wait.items) {
    emit(why, item, wait, {});
  }
  refuse(*state_.leases.edit(wait.lease), wait.request, refused);
  applied_.notices.push_back(
      {.lease = wait.lease, .request = wait.request, .end = std::move(refused)});
}

void Step::take_revision() {
  state_.revision = Revision{state_.revision.get() + 1};
}

void Step::remember(Lease& lease, RequestId request, History::Entry entry) {
  account(lease.id);
  if (request != RequestId{}) {
    entry.finished = entry.life == History::Life::over ? time_at(version_2) : ClusterTime{};
    lease.history.record(request, std::move(entry));
    forget_answers(lease);
  }
}

ClusterTime Step::outdated() const {
  const auto retention = state_.limits.answer_retention;
  return is_at_least(version_2) && state_.now > retention ? state_.now - retention : ClusterTime{};
}

void Step::forget_answers(Lease& lease) {
  const auto finished_max = state_.limits.answers_per_lease_max;
  if (!is_at_least(version_2)) {
    lease.history.forget({.finished_max = finished_max});
    return;
  }
  // More than one per added answer, so that a backlog shrinks; few, so that the step stays short.
  constexpr std::size_t at_once = 4;
  applied_.answers_dropped += lease.history.forget(
      {.finished_max =
           has_room_for_answers(lease) ? finished_max : std::min(finished_max, Quota::answers_kept),
       .outdated = outdated(),
       .count_max = at_once});
}

// Answers have a quota of their own, in total and per user. Beyond it they are forgotten instead of
// refusing requests, because a release must always succeed.
bool Step::has_room_for_answers(const Lease& lease) const {
  const auto& usage = state_.leases.usage();
  const Quota all{state_.limits.state_bytes_max};
  const Quota share{state_.limits.state_bytes_per_user_max};
  return usage.total().answers <= all.answers_max() &&
         (lease.user.empty() || usage.of_user(lease.user.view()).answers <= share.answers_max());
}

void Step::forget_ended() {
  const auto early = state_.leases.forget_ended(
      {.ended_max = LeaseTable::ended_max(state_.version), .outdated = outdated()});
  applied_.answers_dropped += is_at_least(version_2) ? early : 0;
}

Refused Step::refuse_by_limit(ReachedLimit reached) {
  applied_.reached_limit = reached.limit;
  return {{.code = Errc::resource_exhausted, .detail = std::move(reached.detail)}};
}

void Step::refuse(Lease& lease, RequestId request, const Refused& refused) {
  remember(lease, request,
           {.answer = Box(refused), .since = state_.revision, .life = History::Life::over});
}

Outcome Step::operator()(const Tick&) {
  return Done{};
}

Outcome Step::operator()(const Compact& command) {
  // At most up to the last revision: later events do not exist yet and must be kept.
  state_.events.compact(std::min(command.revision, Revision{state_.revision.get() - 1}));
  return Done{};
}

// Limits that the present version lacks get their defaults, so that the state stays representable
// in its version.
Outcome Step::operator()(const SetLimits& command) {
  if (auto error = check(command.limits)) {
    return Refused{*std::move(error)};
  }
  const bool is_forgetful =
      command.limits.answers_per_lease_max < state_.limits.answers_per_lease_max;
  state_.limits = at_version(command.limits, state_.version);
  if (is_forgetful) {
    std::ranges::copy(state_.leases.forget_answers_beyond(command.limits.answers_per_lease_max),
                      std::back_inserter(changed_));
  }
  return Done{};
}

// A downgrade is possible, unless the state uses what the older version cannot represent.
Outcome Step::operator()(const SetClusterVersion& command) {
  if (command.version < oldest_version || command.version > newest_version) {
    return Refused{{.code = Errc::invalid_argument,
                    .detail = "cluster version: at least " + std::to_string(oldest_version.get()) +
                              ", at most " + std::to_string(newest_version.get())}};
  }
  if (command.version < version_2 && state_.restoration != Restoration{}) {
    return Refused{{.code = Errc::unavailable,
                    .detail = "the state is being restored from a backup; version " +
                              std::to_string(command.version.get()) + " cannot express that"}};
  }
  convert(state_, command.version);
  return Done{};
}

}  // namespace tenure::core
