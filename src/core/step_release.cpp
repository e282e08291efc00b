#include <algorithm>
#include <tuple>
#include <utility>

#include "core/items_at.hpp"
#include "core/step.hpp"
#include "core/validate.hpp"

namespace tenure::core {
namespace {

/// Item that a release by target means. Its mode does not matter to LockTable::own_hold().
Item like(const Target& target) {
  return {.name = target.name,
          .claim = target.range ? Claim(Keys{.range = *target.range}) : Claim(Whole{})};
}

}  // namespace

Outcome Step::operator()(const Release& command) {
  auto* lease = state_.leases.edit(command.lease);
  if (lease == nullptr) {
    return LeaseLost{command.lease};
  }
  lease->last_seen = state_.now;
  if (auto known = find_answer(*lease, command.request, Kind::release)) {
    // Retry of an applied request: repeat the answer, change nothing.
    return *std::move(known);
  }
  return release(*lease, command);
}

// Both outcomes are remembered: a retry of a release must neither count down twice nor turn into an
// error.
Outcome Step::release(Lease& lease, const Release& command) {
  const auto* token = std::get_if<FencingToken>(&command.what);
  auto outcome = token != nullptr ? release_token(lease, *token)
                                  : release_item(lease, std::get<Target>(command.what));
  if (const auto* released = std::get_if<Released>(&outcome)) {
    remember(lease, command.request,
             {.answer = *released, .since = state_.revision, .life = History::Life::over});
  } else {
    refuse(lease, command.request, std::get<Refused>(outcome));
  }
  return outcome;
}

// Checks the lease, so that a client cannot release the hold of another one by its token. A
// reentered hold is only counted down.
Outcome Step::release_token(Lease& lease, FencingToken token) {
  const auto* hold = state_.locks.find(token);
  if (hold == nullptr || hold->lease != lease.id) {
    return Refused{{.code = Errc::not_held, .detail = "no hold of this lease has this token"}};
  }
  if (hold->count > 1) {
    const auto left = hold->count - 1;
    state_.locks.set_count(token, left);
    return Released{.count_left = left};
  }
  const auto ended = state_.locks.remove(token, state_.revision);
  visits_.add(ended.items.size());
  touch(ended.items);
  for (const auto& item : ended.items) {
    emit(EventType::released, item, ended, token);
  }
  lease.history.retire(ended.request, state_.revision, time_at(version_2));
  forget_answers(lease);
  account(lease.id);
  return Released{};
}

// A target has no capacity, so whether it means a semaphore follows from the lock record.
Outcome Step::release_item(Lease& lease, const Target& target) {
  auto wanted = like(target);
  const auto* lock = state_.locks.find(wanted.resource());
  if (lock != nullptr && lock->capacity() > 0) {
    wanted.claim = Permits{};
  }
  const auto* hold = state_.locks.own_hold(lease.id, wanted, visits_);
  if (hold == nullptr) {
    return Refused{{.code = Errc::not_held, .detail = "this lease does not hold it"}};
  }
  if (hold->items.size() == 1) {
    return release_token(lease, hold->token);
  }
  const auto it = std::ranges::find_if(hold->items, [&](const Item& item) {
    const auto* keys = std::get_if<Keys>(&item.claim);
    return item.is_at(wanted.resource()) && (keys == nullptr || keys->range == target.range);
  });
  remove_item(hold->token, static_cast<std::size_t>(it - hold->items.begin()), EventType::released);
  return Released{};
}

void Step::remove_item(FencingToken token, std::size_t index, EventType why) {
  const auto& before = *state_.locks.find(token);
  const bool is_last = before.items.size() == 1;
  // Copied without its items: a hold of n items that is released item by item would cost O(n^2).
  const Hold hold{.token = token,
                  .create_revision = before.create_revision,
                  .lease = before.lease,
                  .request = before.request,
                  .owner = before.owner,
                  .metadata = before.metadata,
                  .acquired = before.acquired,
                  .count = before.count};
  const auto item = state_.locks.remove_item(token, index, state_.revision);
  visits_.add();
  touch(std::span(&item, 1));
  emit(why, item, hold, token);
  account(hold.lease);
  if (is_last) {
    auto& lease = *state_.leases.edit(hold.lease);
    lease.history.retire(hold.request, state_.revision, time_at(version_2));
    forget_answers(lease);
  }
}

// If the request was granted already, returns that grant, and the client has to release it. So a
// client that gives up never loses a lock without knowing it.
Outcome Step::operator()(const Abandon& command) {
  auto* lease = state_.leases.edit(command.lease);
  if (lease == nullptr) {
    return LeaseLost{command.lease};
  }
  lease->last_seen = state_.now;
  if (command.request == RequestId{}) {
    return Refused{{.code = Errc::invalid_argument, .detail = "request id is missing"}};
  }
  Refused cancelled{{.code = Errc::cancelled}};
  const auto entry = lease->history.find(command.request);
  if (!entry) {
    // Not arrived yet, or forgotten. The refusal is remembered, so a late Acquire is not queued.
    refuse(*lease, command.request, cancelled);
    return cancelled;
  }
  const auto* waiting = std::get_if<Waiting>(&entry->answer);
  if (waiting == nullptr) {
    return *find_answer(*lease, command.request, Kind::acquire);
  }
  const auto wait = remove_wait(waiting->ticket);
  touch(wait.items);
  for (const auto& item : wait.items) {
    emit(EventType::abandoned, item, wait, {});
  }
  refuse(*lease, command.request, cancelled);
  return cancelled;
}

// Releases only the items at this resource; a hold with other items continues with them. The holder
// is notified by a Loss.
Outcome Step::operator()(const ForceRelease& command) {
  if (auto error = check(command, state_.limits)) {
    return Refused{*std::move(error)};
  }
  if (is_at_least(version_2)) {
    forced_by_ = {.operator_name = command.operator_name, .reason = command.reason};
  }
  const auto* lock = state_.locks.find(command.resource);
  // A copy, because the record is dropped with the last holder.
  const auto tokens = lock == nullptr ? std::vector<FencingToken>{}
                                      : std::vector(lock->holds().begin(), lock->holds().end());
  Forced forced;
  for (const auto token : tokens) {
    if (command.token && *command.token != token) {
      continue;
    }
    ++forced.holds;
    visits_.add();
    const auto& taken = *state_.locks.find(token);
    applied_.losses.push_back(
        {.lease = taken.lease, .request = taken.request, .token = token, .why = EventType::forced});
    // Each removal edits the record, so the hold and its next item are looked up again.
    for (const auto* hold = state_.locks.find(token); hold != nullptr;
         hold = state_.locks.find(token)) {
      const auto here = items_at(hold->items, command.resource);
      if (here.empty()) {
        applied_.losses.back().items_left = hold->items.size();
        break;
      }
      remove_item(token, static_cast<std::size_t>(&here.front() - hold->items.data()),
                  EventType::forced);
    }
  }
  if (forced.holds == 0) {
    return Refused{{.code = Errc::not_held, .detail = "not held, or not with this token"}};
  }
  return forced;
}

}  // namespace tenure::core
