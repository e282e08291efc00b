#include <algorithm>
#include <iterator>
#include <span>
#include <utility>

#include "core/admission.hpp"
#include "core/items_at.hpp"
#include "core/step.hpp"
#include "core/validate.hpp"

namespace tenure::core {
namespace {

/// Claims that the requesting lease has already at the resources of its request.
class OwnClaims {
 public:
  OwnClaims(std::span<const Item> wanted, Visits& visits)
      : wanted_(wanted), permits_(wanted.size()), visits_(visits) {}

  enum class Blocks : std::uint8_t { no, yes };
  /// Adds a hold or wait of the lease. `blocks`: it is held by, or ahead of, the request; permits
  /// count in any case.
  void add(std::span<const Item> items, Blocks blocks) {
    visits_.add(items.size());
    for (const auto& item : items) {
      const auto same = items_at(wanted_, item.resource_view());
      has_conflict_ = has_conflict_ ||
                      (blocks == Blocks::yes && std::ranges::any_of(same, [&](const Item& other) {
                         return conflict(item.claim, other.claim);
                       }));
      if (const auto* some = std::get_if<Permits>(&item.claim); some != nullptr && !same.empty()) {
        permits_[static_cast<std::size_t>(same.data() - wanted_.data())] += some->wanted;
      }
    }
  }

  /// Whether the lease blocks itself: by a conflict, or by more permits than the capacity while it
  /// keeps those it has.
  [[nodiscard]] bool is_self_blocking() const {
    if (has_conflict_) {
      return true;
    }
    for (std::size_t i = 0; i < wanted_.size(); ++i) {
      const auto* wanted = std::get_if<Permits>(&wanted_[i].claim);
      if (wanted != nullptr && permits_[i] + wanted->wanted > wanted->capacity) {
        return true;
      }
    }
    return false;
  }

 private:
  std::span<const Item> wanted_;
  std::vector<std::uint64_t> permits_;  ///< Permits of the lease, by item of the request.
  Visits& visits_;
  bool has_conflict_ = false;
};

}  // namespace

// Duplicate detection comes first, so that a retry gets its first answer even if limits have
// changed since. Errors of validation and limits are not remembered: they changed nothing, and a
// retry may succeed later.
Outcome Step::operator()(const Acquire& command) {
  auto* lease = state_.leases.edit(command.lease);
  if (lease == nullptr) {
    return LeaseLost{command.lease};
  }
  lease->last_seen = state_.now;
  if (auto known = find_answer(*lease, command.request, Kind::acquire)) {
    // Retry of an applied request: repeat the answer, change nothing.
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
  if (command.self_conflict == SelfConflict::reenter) {
    const auto* hold = state_.locks.own_hold(command.lease, wanted.items.front(), visits_);
    if (hold != nullptr && hold->items.size() == 1) {
      return acquire_held(*lease, *hold, std::move(wanted), command);
    }
  }
  return acquire_new(*lease, wanted, command);
}

// The answer of a request that waits is its present queue position, not the one at the time of the
// first answer.
std::optional<Outcome> Step::find_answer(const Lease& lease, RequestId request, Kind kind) const {
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

// With several items, the largest position counts: the request is granted when the slowest of its
// queues has reached it.
Queued Step::queued(const Wait& wait) const {
  Queued answer{.ticket = wait.ticket};
  for (const auto& item : wait.items) {
    const auto& queue = state_.locks.find(item.resource_view())->queue();
    const auto before = queue.count_before(wait.turn());
    if (before + 1 > answer.position) {
      answer.position = before + 1;
      answer.predecessor = before == 0 ? std::nullopt : std::optional(queue[before - 1].ticket);
    }
  }
  return answer;
}

// A covered mode is a reentry: it keeps the token and increments the count. A stronger one is an
// upgrade: it is queued before all other waits, and gets a new token.
Outcome Step::acquire_held(Lease& lease, const Hold& hold, Wait wanted, const Acquire& command) {
  if (hold.count >= state_.limits.reentries_max) {
    return refuse_by_limit({.limit = "reentries_max",
                            .detail = "reentries of one hold: at most " +
                                      std::to_string(state_.limits.reentries_max)});
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

// Grants at once if the request is admissible; else refuses it (a try, or a self-deadlock) or
// queues it. An upgrade that is granted at once is the only grant that can close a cycle: see
// suspect_.
Outcome Step::acquire_new(Lease& lease, const Wait& wanted, const Acquire& command) {
  if (!is_restoring() && Admission(state_.locks, visits_).admits(wanted)) {
    if (auto reached = check_limits(wanted, LimitsFor::hold, state_)) {
      return refuse_by_limit(*std::move(reached));
    }
    if (wanted.upgrades && !state_.locks.owned(lease.id).waits.empty()) {
      suspect_ = lease.id;
    }
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
  // Holds of an unconfirmed lease may have been released since the backup, so they prove no
  // self-deadlock.
  if (command.self_conflict != SelfConflict::wait && !is_unconfirmed(lease.id) &&
      is_self_blocking(wanted)) {
    for (const auto& item : wanted.items) {
      emit(EventType::deadlock, item, wanted, {});
    }
    Refused refused{{.code = Errc::deadlock, .detail = "the lease waits for itself"},
                    {{.lease = lease.id,
                      .request = wanted.request,
                      .owner = wanted.owner,
                      .resource = wanted.items.front().resource()}}};
    refuse(lease, command.request, refused);
    return refused;
  }
  if (auto reached = check_limits(wanted, LimitsFor::wait, state_)) {
    return refuse_by_limit(*std::move(reached));
  }
  return wait_for(lease, wanted);
}

bool Step::is_self_blocking(const Wait& wanted) {
  const auto& owned = state_.locks.owned(wanted.lease);
  OwnClaims own(wanted.items, visits_);
  for (const auto token : owned.holds) {
    own.add(state_.locks.find(token)->items,
            token == wanted.upgrades ? OwnClaims::Blocks::no : OwnClaims::Blocks::yes);
  }
  for (const auto ticket : owned.waits) {
    const auto& other = *state_.locks.find(ticket);
    if (wanted.upgrades && other.upgrades == wanted.upgrades) {
      return true;
    }
    own.add(other.items,
            other.turn() < wanted.turn() ? OwnClaims::Blocks::yes : OwnClaims::Blocks::no);
  }
  return own.is_self_blocking();
}

// The wait is added before the search, because the search starts from the waits of the lease; it is
// removed again if it closes a cycle. So the requester is always the victim of a cycle that it
// closes.
Outcome Step::wait_for(Lease& lease, const Wait& wanted) {
  const auto ticket = wanted.ticket;
  add_wait(wanted);
  const auto cycle = search_cycle(lease.id);
  if (!cycle) {
    remove_wait(ticket);
    return refuse_by_limit(
        {.limit = "deadlock_visits_max",
         .detail = "too many holds and waits to search for a deadlock; try again later"});
  }
  if (!cycle->empty()) {
    // There was no cycle before this wait, so removing it leaves none.
    Refused refused{{.code = Errc::deadlock}, describe(state_.locks, *cycle)};
    remove_wait(ticket);
    for (const auto& item : wanted.items) {
      emit(EventType::deadlock, item, wanted, {});
    }
    refuse(lease, wanted.request, refused);
    return refused;
  }
  for (const auto& item : wanted.items) {
    emit(EventType::queued, item, wanted, {});
  }
  remember(lease, wanted.request,
           {.answer = Waiting{ticket}, .since = ticket, .life = History::Life::live});
  return queued(wanted);
}

// An upgrade replaces its hold under the new token and keeps the first create_revision. Its own
// request is over at once: the request that began the hold stays the live one.
Granted Step::grant(Lease& lease, const Wait& wanted) {
  visits_.add(wanted.items.size());
  const FencingToken token{state_.revision.get()};
  Granted granted{.token = token};
  const auto* old = wanted.upgrades ? state_.locks.find(*wanted.upgrades) : nullptr;
  const bool is_upgrade = old != nullptr;
  if (is_upgrade) {
    applied_.upgraded.push_back(
        {.create_revision = old->create_revision, .acquired = old->acquired});
    state_.locks.upgrade(wanted, token, state_.now);
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
    emit(EventType::granted, item, wanted, token);
  }
  remember(lease, wanted.request,
           {.answer = granted,
            .since = state_.revision,
            .life = is_upgrade ? History::Life::over : History::Life::live});
  return granted;
}

}  // namespace tenure::core
