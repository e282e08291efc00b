#include <algorithm>
#include <iterator>
#include <span>
#include <utility>

#include "core/deadlock.hpp"
#include "core/step.hpp"
#include "core/validate.hpp"

namespace tenure::core {
namespace {

bool conflicts(std::span<const Item> left, std::span<const Item> right) {
  return std::ranges::any_of(left, [&](const Item& a) {
    return std::ranges::any_of(
        right, [&](const Item& b) { return a.name == b.name && conflict(a.claim, b.claim); });
  });
}

/// More permits than there are, if the lease keeps what it has.
bool starves_itself(const LockTable& table, const LockTable::Owned& owned, const Item& wanted) {
  const auto* permits = std::get_if<Permits>(&wanted.claim);
  if (permits == nullptr) {
    return false;
  }
  std::uint64_t own = permits->wanted;
  const auto count = [&](std::span<const Item> items) {
    for (const auto& item : items) {
      if (item.is_at(wanted.place_view())) {
        own += std::get<Permits>(item.claim).wanted;
      }
    }
  };
  for (const auto token : owned.holds) {
    count(table.find(token)->items);
  }
  for (const auto ticket : owned.waits) {
    count(table.find(ticket)->items);
  }
  return own > permits->capacity;
}

}  // namespace

Outcome Step::operator()(const Acquire& command) {
  auto* lease = state_.leases.edit(command.lease);
  if (lease == nullptr) {
    return LeaseLost{command.lease};
  }
  lease->last_seen = state_.now;
  if (auto known = recall(*lease, command.request, Kind::acquire)) {
    // Already applied: answer as before, change nothing.
    return *std::move(known);
  }
  if (auto error = check(command, state_.limits)) {
    return Refused{*std::move(error)};
  }
  Wait wanted{.ticket = state_.revision,
              .lease = command.lease,
              .request = command.request,
              .items = in_order(command.items),
              .owner = command.owner,
              .metadata = command.metadata,
              .since = state_.now};
  if (auto error = check_kinds(wanted.items, state_.locks)) {
    return Refused{*std::move(error)};
  }
  if (command.again == Again::reenter) {
    const auto* hold = state_.locks.own_hold(command.lease, wanted.items.front());
    if (hold != nullptr && hold->items.size() == 1) {
      return acquire_held(*lease, *hold, std::move(wanted), command);
    }
  }
  return acquire_new(*lease, wanted, command);
}

std::optional<Outcome> Step::recall(const Lease& lease, RequestId request, Kind kind) const {
  const auto entry = request == RequestId{} ? std::nullopt : lease.history.find(request);
  if (!entry) {
    return std::nullopt;
  }
  const auto& answer = entry->answer;
  if (const auto* refused = std::get_if<Box<Refused>>(&answer)) {
    return **refused;
  }
  const auto* released = std::get_if<Released>(&answer);
  const auto* downgraded = std::get_if<Downgraded>(&answer);
  const auto* set = std::get_if<TtlSet>(&answer);
  const bool is_its_kind = (released != nullptr) == (kind == Kind::release) &&
                           (downgraded != nullptr) == (kind == Kind::downgrade) &&
                           (set != nullptr) == (kind == Kind::set_ttl);
  if (!is_its_kind) {
    return Refused{{.code = Errc::invalid_argument,
                    .detail = "the request id was used for another kind of request"}};
  }
  if (const auto* waiting = std::get_if<Waiting>(&answer)) {
    return queued(*state_.locks.find(waiting->ticket));
  }
  if (const auto* granted = std::get_if<Granted>(&answer)) {
    return *granted;
  }
  if (set != nullptr) {
    return Renewed{{{.id = lease.id, .ttl = set->ttl}}};
  }
  return released != nullptr ? Outcome(*released) : Outcome(*downgraded);
}

Queued Step::queued(const Wait& wait) const {
  Queued answer{.ticket = wait.ticket};
  for (const auto& item : wait.items) {
    const auto& queue = state_.locks.find(item.place_view())->queue();
    const auto before = queue.count_before(wait.turn());
    if (before + 1 > answer.position) {
      answer.position = before + 1;
      answer.predecessor = before == 0 ? std::nullopt : std::optional(queue[before - 1].ticket);
    }
  }
  return answer;
}

Outcome Step::acquire_held(Lease& lease, const Hold& hold, Wait wanted, const Acquire& command) {
  if (hold.count >= state_.limits.reentries_max) {
    return Refused{{.code = Errc::resource_exhausted, .detail = "the hold is entered too often"}};
  }
  if (is_unconfirmed(lease.id)) {
    return Refused{{.code = Errc::would_block,
                    .detail = "the hold was restored from a backup and is not confirmed"}};
  }
  const auto held = mode_of(hold.items.front());
  const auto mode = join(held, mode_of(wanted.items.front()));
  if (mode == held) {
    const Granted granted{.token = hold.token, .count = hold.count + 1};
    state_.locks.set_count(hold.token, granted.count);
    remember(lease, command.request,
             {.answer = granted, .since = state_.revision, .life = History::Life::over});
    return granted;
  }
  set_mode(wanted.items.front(), mode);
  wanted.upgrades = hold.token;
  return acquire_new(lease, wanted, command);
}

Outcome Step::acquire_new(Lease& lease, const Wait& wanted, const Acquire& command) {
  if (!is_restoring() && state_.locks.admits(wanted)) {
    if (auto error = check_room(wanted, Room::hold, state_)) {
      return Refused{*std::move(error)};
    }
    suspect(lease.id);
    return grant(lease, wanted);
  }
  if (command.queue == Queue::skip) {
    Refused refused{{.code = Errc::would_block}};
    if (is_restoring()) {
      refused.error.detail =
          "restored from a backup; no lock is granted before the leases of then "
          "have ended";
    }
    refuse(lease, command.request, refused);
    return refused;
  }
  // What an unconfirmed lease holds may have been released since the backup.
  if (command.again != Again::wait && !is_unconfirmed(lease.id) && is_in_its_own_way(wanted)) {
    for (const auto& item : wanted.items) {
      tell(EventType::deadlock, item, wanted, {});
    }
    Refused refused{{.code = Errc::deadlock, .detail = "the lease waits for itself"},
                    {{.lease = lease.id,
                      .request = wanted.request,
                      .owner = wanted.owner,
                      .place = wanted.items.front().place()}}};
    refuse(lease, command.request, refused);
    return refused;
  }
  if (auto error = check_room(wanted, Room::wait, state_)) {
    return Refused{*std::move(error)};
  }
  return wait_for(lease, wanted);
}

bool Step::is_in_its_own_way(const Wait& wanted) const {
  const auto& owned = state_.locks.owned(wanted.lease);
  const bool behind_holds = std::ranges::any_of(owned.holds, [&](FencingToken token) {
    return token != wanted.upgrades && conflicts(state_.locks.find(token)->items, wanted.items);
  });
  const bool behind_waits = std::ranges::any_of(owned.waits, [&](Revision ticket) {
    const auto& other = *state_.locks.find(ticket);
    const bool is_same_upgrade = wanted.upgrades && other.upgrades == wanted.upgrades;
    return is_same_upgrade ||
           (other.turn() < wanted.turn() && conflicts(other.items, wanted.items));
  });
  return behind_holds || behind_waits || std::ranges::any_of(wanted.items, [&](const Item& item) {
           return starves_itself(state_.locks, owned, item);
         });
}

Outcome Step::wait_for(Lease& lease, const Wait& wanted) {
  const auto ticket = wanted.ticket;
  state_.locks.add(wanted);
  const auto cycle = find_cycle(state_.locks, lease.id);
  if (!cycle.empty()) {
    // There was no cycle before this wait, so without it there is none again.
    Refused refused{{.code = Errc::deadlock}, describe(state_.locks, cycle)};
    state_.locks.remove(ticket);
    for (const auto& item : wanted.items) {
      tell(EventType::deadlock, item, wanted, {});
    }
    refuse(lease, wanted.request, refused);
    return refused;
  }
  for (const auto& item : wanted.items) {
    tell(EventType::queued, item, wanted, {});
  }
  remember(lease, wanted.request,
           {.answer = Waiting{ticket}, .since = ticket, .life = History::Life::live});
  return queued(wanted);
}

Granted Step::grant(Lease& lease, const Wait& wanted) {
  const FencingToken token{state_.revision.get()};
  Granted granted{.token = token};
  const auto* old = wanted.upgrades ? state_.locks.find(*wanted.upgrades) : nullptr;
  const bool is_upgrade = old != nullptr;
  if (is_upgrade) {
    applied_.strengthened.push_back(
        {.create_revision = old->create_revision, .acquired = old->acquired});
    state_.locks.strengthen(wanted, token, state_.now);
    granted.count = state_.locks.find(token)->count;
  } else {
    state_.locks.add(Hold{.token = token,
                          .create_revision = state_.revision,
                          .lease = wanted.lease,
                          .request = wanted.request,
                          .items = wanted.items,
                          .owner = wanted.owner,
                          .metadata = wanted.metadata,
                          .acquired = state_.now},
                     state_.revision);
  }
  for (const auto& item : wanted.items) {
    tell(EventType::granted, item, wanted, token);
  }
  remember(lease, wanted.request,
           {.answer = granted,
            .since = state_.revision,
            .life = is_upgrade ? History::Life::over : History::Life::live});
  return granted;
}

}  // namespace tenure::core
