#include <algorithm>
#include <iterator>
#include <utility>

#include <rapidcheck.h>

#include "support/core/reference.hpp"

namespace tenure::core::model {
namespace {

bool clash(std::span<const Item> items, const Item& wanted) {
  return std::ranges::any_of(items, [&](const Item& item) {
    return item.is_at(wanted.resource()) && conflict(item.claim, wanted.claim);
  });
}

std::uint64_t permits_at(std::span<const Item> items, const Resource& resource) {
  std::uint64_t sum = 0;
  for (const auto& item : items) {
    if (item.is_at(resource)) {
      sum += std::get<Permits>(item.claim).wanted;
    }
  }
  return sum;
}

}  // namespace

bool Reference::is_own_obstacle(const Wait& wanted) const {
  for (const auto& item : wanted.items) {
    for (const auto& hold : holds_) {
      if (hold.lease == wanted.lease && hold.token != wanted.upgrades && clash(hold.items, item)) {
        return true;
      }
    }
    for (const auto& wait : waits_) {
      if (wait.lease == wanted.lease && ((wait.turn() < wanted.turn() && clash(wait.items, item)) ||
                                         (wanted.upgrades && wait.upgrades == wanted.upgrades))) {
        return true;
      }
    }
    const auto* permits = std::get_if<Permits>(&item.claim);
    if (permits != nullptr &&
        permits_of(wanted.lease, item.resource()) + permits->wanted > permits->capacity) {
      return true;
    }
  }
  return false;
}

std::uint64_t Reference::permits_of(LeaseId lease, const Resource& resource) const {
  std::uint64_t sum = 0;
  for (const auto& hold : holds_) {
    sum += hold.lease == lease ? permits_at(hold.items, resource) : 0;
  }
  for (const auto& wait : waits_) {
    sum += wait.lease == lease ? permits_at(wait.items, resource) : 0;
  }
  return sum;
}

Queued Reference::position_of(const Wait& wait) const {
  Queued queued{.ticket = wait.ticket};
  for (const auto& item : wait.items) {
    const auto queue = in_turn(item.resource());
    const auto it = std::ranges::find(queue, wait.ticket, &Wait::ticket);
    const auto position = static_cast<std::size_t>(it - queue.begin()) + 1;
    if (position > queued.position) {
      queued.position = position;
      queued.predecessor = position == 1 ? std::nullopt : std::optional(queue[position - 2].ticket);
    }
  }
  return queued;
}

std::vector<Wait> Reference::in_turn(const Resource& resource) const {
  std::vector<Wait> queue;
  std::ranges::copy_if(waits_, std::back_inserter(queue),
                       [&](const Wait& wait) { return has(wait.items, resource); });
  std::ranges::sort(queue, {}, &Wait::turn);
  return queue;
}

bool Reference::is_blocked(const Wait& wait) const {
  return std::ranges::any_of(wait.items, [&](const Item& item) { return is_blocked(wait, item); });
}

bool Reference::is_blocked(const Wait& wait, const Item& item) const {
  const auto* permits = std::get_if<Permits>(&item.claim);
  std::uint64_t taken = 0;
  for (const auto& hold : holds_) {
    if (permits != nullptr) {
      taken += permits_at(hold.items, item.resource());
    } else if (hold.token != wait.upgrades && clash(hold.items, item)) {
      return true;
    }
  }
  for (const auto& other : waits_) {
    if (!(other.turn() < wait.turn())) {
      continue;
    }
    if (permits != nullptr) {
      taken += permits_at(other.items, item.resource());
    } else if (clash(other.items, item)) {
      return true;
    }
  }
  return permits != nullptr && taken + permits->wanted > permits->capacity;
}

std::set<LeaseId> Reference::blockers(const Wait& wait, const Item& item,
                                      const std::set<LeaseId>& among) const {
  std::set<LeaseId> found;
  std::uint64_t own = 0;
  std::uint64_t others = 0;
  const auto* permits = std::get_if<Permits>(&item.claim);
  const auto look = [&](LeaseId lease, std::span<const Item> items) {
    if (permits != nullptr && lease == wait.lease) {
      own += permits_at(items, item.resource());
    } else if (lease != wait.lease && among.contains(lease) &&
               (permits == nullptr ? clash(items, item) : has(items, item.resource()))) {
      found.insert(lease);
      others += permits == nullptr ? 0 : permits_at(items, item.resource());
    }
  };
  for (const auto& hold : holds_) {
    look(hold.lease, hold.items);
  }
  for (const auto& other : waits_) {
    if (other.turn() < wait.turn()) {
      look(other.lease, other.items);
    }
  }
  if (permits == nullptr) {
    return found;
  }
  own = std::min<std::uint64_t>(own, permits->capacity - permits->wanted);
  return own + others + permits->wanted > permits->capacity ? found : std::set<LeaseId>{};
}

std::set<LeaseId> Reference::deadlocked() const {
  std::set<LeaseId> left;
  for (const auto& wait : waits_) {
    left.insert(wait.lease);
  }
  const auto may_finish = [&](LeaseId lease) {
    return std::ranges::none_of(waits_, [&](const Wait& wait) {
      return wait.lease == lease && std::ranges::any_of(wait.items, [&](const Item& item) {
               return !blockers(wait, item, left).empty();
             });
    });
  };
  while (std::erase_if(left, may_finish) > 0) {
    // A lease that finishes releases all it holds, which may let others finish.
  }
  return left;
}

std::string Reference::is_no_cycle(const std::vector<CycleStep>& cycle) const {
  const auto among = deadlocked();
  for (std::size_t i = 0; i < cycle.size(); ++i) {
    const auto& next = cycle[(i + 1) % cycle.size()];
    const auto it = std::ranges::find_if(waits_, [&](const Wait& wait) {
      return wait.lease == cycle[i].lease && wait.request == cycle[i].request;
    });
    if (it == waits_.end()) {
      return "a member does not wait";
    }
    if (!among.contains(it->lease)) {
      return "a member could go on";
    }
    const bool leads_on = std::ranges::any_of(it->items, [&](const Item& item) {
      return item.is_at(cycle[i].resource) && blockers(*it, item, among).contains(next.lease);
    });
    if (!leads_on) {
      return "a member does not wait for the next";
    }
  }
  return cycle.empty() ? "there is no cycle" : "";
}

Granted Reference::grant(const Wait& wanted) {
  Granted granted{.token = FencingToken{revision_}};
  auto* hold = wanted.upgrades ? hold_of(*wanted.upgrades) : nullptr;
  if (hold != nullptr) {
    auto stronger = *hold;
    drop_hold(hold->token);
    stronger.token = granted.token;
    stronger.items = wanted.items;
    stronger.owner = wanted.owner;
    stronger.metadata = wanted.metadata;
    granted.count = ++stronger.count;
    holds_.push_back(stronger);
  } else {
    holds_.push_back({.token = granted.token,
                      .lease = wanted.lease,
                      .request = wanted.request,
                      .items = wanted.items,
                      .owner = wanted.owner,
                      .metadata = wanted.metadata});
  }
  leases_.at(wanted.lease).answers[wanted.request] = granted;
  if (std::ranges::find(waits_, wanted.lease, &Wait::lease) != waits_.end()) {
    suspects_.insert(wanted.lease);
  }
  return granted;
}

void Reference::settle() {
  if (is_restoring()) {
    touched_.clear();
  }
  while (!touched_.empty() || !suspects_.empty()) {
    if (touched_.empty()) {
      give_way(suspects_.extract(suspects_.begin()).value());
      continue;
    }
    const auto resource = touched_.extract(touched_.begin()).value();
    for (const auto& wait : in_turn(resource)) {
      if (!is_blocked(wait)) {
        drop_wait(wait.ticket);
        ++revision_;
        const auto granted = grant(wait);
        notices_.push_back({.lease = wait.lease, .request = wait.request, .end = granted});
      }
    }
  }
}

void Reference::give_way(LeaseId lease) {
  if (!deadlocked().contains(lease)) {
    return;
  }
  RC_ASSERT(!reported_deadlocks_.empty());
  const auto reported = reported_deadlocks_.front();
  reported_deadlocks_.erase(reported_deadlocks_.begin());
  const auto& cycle = std::get<Refused>(reported.end).cycle;
  RC_ASSERT(is_no_cycle(cycle) == "");
  RC_ASSERT(cycle.front().lease == reported.lease);
  RC_ASSERT(cycle.front().request == reported.request);
  const auto ticket_of = [this](const CycleStep& member) {
    return std::get<Waiting>(leases_.at(member.lease).answers.at(member.request)).ticket;
  };
  const auto victim = ticket_of(cycle.front());
  for (const auto& member : cycle) {
    RC_ASSERT(ticket_of(member) <= victim);
  }
  touch(std::ranges::find(waits_, victim, &Wait::ticket)->items);
  drop_wait(victim);
  leases_.at(reported.lease).answers[reported.request] = std::get<Refused>(reported.end);
  notices_.push_back(reported);
  suspects_.insert(lease);
}

void Reference::end(const std::set<LeaseId>& leases, EventType why) {
  for (const auto& wait : waits_) {
    if (leases.contains(wait.lease)) {
      touch(wait.items);
      notices_.push_back(
          {.lease = wait.lease, .request = wait.request, .end = LeaseLost{wait.lease}});
    }
  }
  for (const auto& hold : holds_) {
    if (leases.contains(hold.lease)) {
      touch(hold.items);
      losses_.push_back(
          {.lease = hold.lease, .request = hold.request, .token = hold.token, .why = why});
    }
  }
  std::erase_if(waits_, [&](const Wait& wait) { return leases.contains(wait.lease); });
  std::erase_if(holds_, [&](const Hold& hold) { return leases.contains(hold.lease); });
  for (const auto id : leases) {
    ended_.emplace_back(id, leases_.at(id).request);
    leases_.erase(id);
    unconfirmed_.erase(id);
  }
  settle();
}

void Reference::drop_wait(Revision ticket) {
  std::erase_if(waits_, [=](const Wait& wait) { return wait.ticket == ticket; });
}

void Reference::drop_hold(FencingToken token) {
  std::erase_if(holds_, [=](const Hold& hold) { return hold.token == token; });
}

Hold* Reference::hold_of(FencingToken token) {
  const auto it = std::ranges::find(holds_, token, &Hold::token);
  return it == holds_.end() ? nullptr : &*it;
}

void Reference::touch(std::span<const Item> items) {
  for (const auto& item : items) {
    touched_.insert(item.resource());
  }
}

std::string Reference::differs_from(const State& state) const {
  if (state.revision.get() != revision_ || state.now != now_) {
    return "revision or time";
  }
  const auto same_hold = [](const Hold& left, const auto& right) {
    return left.token == right.first && left.lease == right.second->lease &&
           left.request == right.second->request && left.items == right.second->items &&
           left.owner == right.second->owner && left.metadata == right.second->metadata &&
           left.count == right.second->count;
  };
  if (!std::ranges::equal(holds_, state.locks.holds(), same_hold)) {
    return "holds";
  }
  const auto same_wait = [](const Wait& left, const auto& right) { return left == *right.second; };
  if (!std::ranges::equal(waits_, state.locks.waits(), same_wait)) {
    return "waits";
  }
  const auto same_lease = [](const auto& left, const auto& right) {
    return left.first == right.first && left.second.deadline == right.second->deadline &&
           left.second.ttl == right.second->ttl && right.second->user == left.second.user;
  };
  if (!std::ranges::equal(leases_, state.leases.all(), same_lease)) {
    return "leases";
  }
  if (state.version != version_ || state.limits.state_bytes_max != bytes_max_ ||
      state.limits.state_bytes_per_user_max != bytes_per_user_max_) {
    return "version or limits";
  }
  if (state.restoration.until != restored_until_.value_or(ClusterTime{}) ||
      state.restoration.unconfirmed != unconfirmed_) {
    return "restoration";
  }
  const auto& usage = state.leases.usage();
  const auto same_bytes = [&](const auto& lease) {
    const auto& user = lease.second.user;
    return user.empty() || usage.of_user(user).records == bytes_of(user);
  };
  return usage.total().records == bytes_of(std::nullopt) && std::ranges::all_of(leases_, same_bytes)
             ? ""
             : "bytes";
}

}  // namespace tenure::core::model
