#include "support/core/reference.hpp"

#include <algorithm>
#include <ranges>
#include <utility>

#include <rapidcheck.h>

namespace tenure::core::model {
namespace {

bool is_target(const Item& item, const std::string& name, const std::optional<BytesRange>& range) {
  const auto* keys = std::get_if<Keys>(&item.claim);
  return item.name == name && (keys == nullptr ? !range : range == keys->range);
}

LockMode& mode_of(Item& item) {
  auto* keys = std::get_if<Keys>(&item.claim);
  return keys != nullptr ? keys->mode : std::get<Whole>(item.claim).mode;
}

}  // namespace

Reference::Expected Reference::step(const Command& command, const Stamp& stamp,
                                    const Applied& actual) {
  notices_.clear();
  losses_.clear();
  reported_deadlocks_.clear();
  reported_cycle_.clear();
  if (const auto* refusal = std::get_if<Refused>(&actual.outcome)) {
    reported_cycle_ = refusal->cycle;
  }
  for (const auto& notice : actual.notices) {
    if (std::holds_alternative<Refused>(notice.end)) {
      reported_deadlocks_.push_back(notice);
    }
  }
  now_ = std::max(now_, stamp.time);
  if (stamp.revision.get() > revision_) {
    revision_ = stamp.revision.get() - 1;
  }
  let_time_pass();
  ++revision_;
  auto outcome = std::visit([this](const auto& it) { return apply(it); }, command);
  settle();
  return {.outcome = std::move(outcome), .notices = notices_, .losses = losses_};
}

Outcome Reference::apply(const Acquire& command) {
  if (!leases_.contains(command.lease)) {
    return LeaseLost{command.lease};
  }
  if (auto before = answer_before(command.lease, command.request, Kind::acquire)) {
    return *before;
  }
  Wait wanted{.ticket = Revision{revision_},
              .lease = command.lease,
              .request = command.request,
              .items = Items(command.items.begin(), command.items.end()),
              .owner = command.owner,
              .metadata = command.metadata,
              .since = now_};
  std::ranges::sort(wanted.items, comes_before);
  for (const auto& item : wanted.items) {
    const auto differs = [&](const auto& other) {
      return std::ranges::any_of(other.items, [&](const Item& its) {
        return its.is_at(item.resource()) && its.claim.index() != item.claim.index();
      });
    };
    if (std::ranges::any_of(holds_, differs) || std::ranges::any_of(waits_, differs)) {
      return refused(Errc::invalid_argument);
    }
  }
  return enter(command, std::move(wanted));
}

std::optional<Outcome> Reference::reenter(const Acquire& command, Wait& wanted) {
  for (auto& hold : holds_ | std::views::reverse) {
    const auto& item = wanted.items.front();
    const auto* keys = std::get_if<Keys>(&item.claim);
    const auto range = keys == nullptr ? std::nullopt : std::optional<BytesRange>(keys->range);
    const auto same = std::ranges::find_if(
        hold.items, [&](const Item& its) { return is_target(its, item.name, range); });
    if (hold.lease != command.lease || same == hold.items.end()) {
      continue;
    }
    if (hold.items.size() > 1) {
      break;
    }
    if (is_unconfirmed(command.lease)) {
      return refused(Errc::would_block);
    }
    const auto held = mode_of(hold.items.front());
    if (covers(held, mode_of(wanted.items.front()))) {
      const Granted granted{.token = hold.token, .count = ++hold.count};
      leases_.at(command.lease).answers[command.request] = granted;
      return granted;
    }
    mode_of(wanted.items.front()) = join(held, mode_of(wanted.items.front()));
    wanted.upgrades = hold.token;
    break;
  }
  return std::nullopt;
}

Outcome Reference::enter(const Acquire& command, Wait wanted) {
  if (command.self_conflict == SelfConflict::reenter) {
    if (auto outcome = reenter(command, wanted)) {
      return *outcome;
    }
  }
  auto& lease = leases_.at(command.lease);
  if (!is_restoring() && !is_blocked(wanted)) {
    return has_room(lease.user, bytes_of_hold(wanted)) ? Outcome(grant(wanted))
                                                       : refused(Errc::resource_exhausted);
  }
  if (command.queue == Queue::skip) {
    lease.answers[command.request] = refused(Errc::would_block);
    return refused(Errc::would_block);
  }
  if (command.self_conflict != SelfConflict::wait && !is_unconfirmed(command.lease) &&
      is_own_obstacle(wanted)) {
    lease.answers[command.request] = refused(Errc::deadlock);
    return refused(Errc::deadlock);
  }
  return join_queue(wanted);
}

Outcome Reference::join_queue(const Wait& wanted) {
  if (!has_room(leases_.at(wanted.lease).user, bytes_of_wait(wanted))) {
    return refused(Errc::resource_exhausted);
  }
  waits_.push_back(wanted);
  auto& answer = leases_.at(wanted.lease).answers[wanted.request];
  if (deadlocked().contains(wanted.lease)) {
    RC_ASSERT(is_no_cycle(reported_cycle_) == "");
    RC_ASSERT(reported_cycle_.front().lease == wanted.lease);
    waits_.pop_back();
    answer = refused(Errc::deadlock);
    return refused(Errc::deadlock);
  }
  answer = Waiting{wanted.ticket};
  return position_of(wanted);
}

std::optional<Outcome> Reference::answer_before(LeaseId lease, RequestId request, Kind kind) const {
  const auto& answers = leases_.at(lease).answers;
  const auto it = answers.find(request);
  if (request == RequestId{} || it == answers.end()) {
    return std::nullopt;
  }
  const auto& answer = it->second;
  if (const auto* refusal = std::get_if<Refused>(&answer)) {
    return *refusal;
  }
  if (const auto* released = std::get_if<Released>(&answer)) {
    return kind == Kind::release ? Outcome(*released) : Outcome(refused(Errc::invalid_argument));
  }
  if (const auto* less = std::get_if<Downgraded>(&answer)) {
    return kind == Kind::downgrade ? Outcome(*less) : Outcome(refused(Errc::invalid_argument));
  }
  if (const auto* set = std::get_if<TtlSet>(&answer)) {
    return kind == Kind::set_ttl ? Outcome(Renewed{{{.id = lease, .ttl = set->ttl}}})
                                 : Outcome(refused(Errc::invalid_argument));
  }
  if (kind != Kind::acquire) {
    return refused(Errc::invalid_argument);
  }
  if (const auto* granted = std::get_if<Granted>(&answer)) {
    return *granted;
  }
  const auto ticket = std::get<Waiting>(answer).ticket;
  return position_of(*std::ranges::find(waits_, ticket, &Wait::ticket));
}

Outcome Reference::apply(const Release& command) {
  if (!leases_.contains(command.lease)) {
    return LeaseLost{command.lease};
  }
  if (auto before = answer_before(command.lease, command.request, Kind::release)) {
    return *before;
  }
  auto outcome = release(command);
  if (command.request != RequestId{}) {
    auto& answer = leases_.at(command.lease).answers[command.request];
    if (const auto* released = std::get_if<Released>(&outcome)) {
      answer = *released;
    } else {
      answer = std::get<Refused>(outcome);
    }
  }
  return outcome;
}

Outcome Reference::release(const Release& command) {
  const auto* target = std::get_if<Target>(&command.what);
  for (auto& hold : holds_ | std::views::reverse) {
    const auto item = std::ranges::find_if(hold.items, [&](const Item& its) {
      return target == nullptr ? hold.token == std::get<FencingToken>(command.what)
                               : is_target(its, target->name, target->range);
    });
    if (hold.lease != command.lease || item == hold.items.end()) {
      continue;
    }
    if (target != nullptr && hold.items.size() > 1) {
      touched_.insert(item->resource());
      hold.items.erase(item);
      return Released{};
    }
    if (hold.count > 1) {
      return Released{.count_left = --hold.count};
    }
    touch(hold.items);
    drop_hold(hold.token);
    return Released{};
  }
  return refused(Errc::not_held);
}

Outcome Reference::apply(const Downgrade& command) {
  if (!leases_.contains(command.lease)) {
    return LeaseLost{command.lease};
  }
  if (auto before = answer_before(command.lease, command.request, Kind::downgrade)) {
    return *before;
  }
  auto outcome = downgrade(command);
  if (command.request != RequestId{}) {
    auto& answer = leases_.at(command.lease).answers[command.request];
    if (const auto* less = std::get_if<Downgraded>(&outcome)) {
      answer = *less;
    } else {
      answer = std::get<Refused>(outcome);
    }
  }
  return outcome;
}

Outcome Reference::downgrade(const Downgrade& command) {
  auto* hold = hold_of(command.token);
  if (hold == nullptr || hold->lease != command.lease) {
    return refused(Errc::not_held);
  }
  const bool is_one_lock =
      hold->items.size() == 1 && !std::holds_alternative<Permits>(hold->items.front().claim);
  const bool is_upgrading =
      std::ranges::any_of(waits_, [&](const Wait& wait) { return wait.upgrades == command.token; });
  if (!is_one_lock || is_upgrading) {
    return refused(Errc::invalid_argument);
  }
  auto& mode = mode_of(hold->items.front());
  if (!covers(mode, command.mode)) {
    return refused(Errc::invalid_argument);
  }
  mode = command.mode;
  touch(hold->items);
  return Downgraded{.mode = command.mode};
}

Outcome Reference::apply(const Abandon& command) {
  if (!leases_.contains(command.lease)) {
    return LeaseLost{command.lease};
  }
  auto& answers = leases_.at(command.lease).answers;
  const auto it = answers.find(command.request);
  if (it != answers.end() && !std::holds_alternative<Waiting>(it->second)) {
    return *answer_before(command.lease, command.request, Kind::acquire);
  }
  if (it != answers.end()) {
    const auto ticket = std::get<Waiting>(it->second).ticket;
    touch(std::ranges::find(waits_, ticket, &Wait::ticket)->items);
    drop_wait(ticket);
  }
  answers[command.request] = refused(Errc::cancelled);
  return refused(Errc::cancelled);
}

Outcome Reference::apply(const GrantLease& command) {
  auto id = command.id;
  if (leases_.contains(id)) {
    const auto& known = leases_.at(id);
    const bool is_retry = command.request != RequestId{} && known.request == command.request &&
                          known.client == command.client && known.ttl == command.ttl;
    return is_retry ? Outcome(LeaseGranted{.id = id, .ttl = known.ttl, .deadline = known.deadline})
                    : Outcome(refused(Errc::invalid_argument));
  }
  if (command.request != RequestId{} &&
      std::ranges::find(ended_, std::pair(id, command.request)) != ended_.end()) {
    return LeaseLost{id};
  }
  const auto user = version_ < version_2 ? "" : command.user;
  if (!has_room(user, bytes_of_lease(command.client, command.address, user))) {
    return refused(Errc::resource_exhausted);
  }
  while (id == LeaseId{} || leases_.contains(id)) {
    id = LeaseId{++last_lease_};
  }
  leases_[id] = {.ttl = command.ttl,
                 .deadline = now_ + command.ttl,
                 .request = command.request,
                 .client = command.client,
                 .address = command.address,
                 .user = user,
                 .answers = {}};
  return LeaseGranted{.id = id, .ttl = command.ttl, .deadline = now_ + command.ttl};
}

Outcome Reference::apply(const RenewLeases& command) {
  Renewed renewed;
  for (const auto id : command.leases) {
    const auto it = leases_.find(id);
    if (is_unconfirmed(id)) {
      renewed.answers.push_back({.id = id, .ttl = std::nullopt, .is_unconfirmed = true});
      continue;
    }
    if (it == leases_.end()) {
      renewed.answers.push_back({.id = id, .ttl = std::nullopt});
      continue;
    }
    it->second.deadline = now_ + it->second.ttl;
    renewed.answers.push_back({.id = id, .ttl = it->second.ttl});
  }
  return renewed;
}

Outcome Reference::apply(const SetTtl& command) {
  const auto it = leases_.find(command.lease);
  if (is_unconfirmed(command.lease)) {
    return Renewed{{{.id = command.lease, .ttl = std::nullopt, .is_unconfirmed = true}}};
  }
  if (it == leases_.end()) {
    return Renewed{{{.id = command.lease, .ttl = std::nullopt}}};
  }
  if (auto before = answer_before(command.lease, command.request, Kind::set_ttl)) {
    return *before;
  }
  auto& lease = it->second;
  lease.ttl = command.ttl;
  lease.deadline = now_ + command.ttl;
  if (command.request != RequestId{}) {
    lease.answers[command.request] = TtlSet{command.ttl};
  }
  return Renewed{{{.id = command.lease, .ttl = command.ttl}}};
}

Outcome Reference::apply(const RevokeLease& command) {
  if (!leases_.contains(command.lease)) {
    return LeaseLost{command.lease};
  }
  end({command.lease}, EventType::revoked);
  return Done{};
}

Outcome Reference::apply(const ForceRelease& command) {
  Forced forced;
  for (auto& hold : holds_) {
    if (has(hold.items, command.resource) && (!command.token || *command.token == hold.token)) {
      ++forced.holds;
      const auto taken = std::ranges::remove_if(
          hold.items, [&](const Item& item) { return item.is_at(command.resource); });
      hold.items.erase(taken.begin(), taken.end());
      losses_.push_back({.lease = hold.lease,
                         .request = hold.request,
                         .token = hold.token,
                         .why = EventType::forced,
                         .items_left = hold.items.size()});
    }
  }
  std::erase_if(holds_, [](const Hold& hold) { return hold.items.empty(); });
  touched_.insert(command.resource);
  return forced.holds == 0 ? Outcome(refused(Errc::not_held)) : Outcome(forced);
}

}  // namespace tenure::core::model
