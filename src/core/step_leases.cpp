#include <algorithm>
#include <array>
#include <iterator>
#include <tuple>
#include <utility>

#include "core/step.hpp"
#include "core/validate.hpp"

namespace tenure::core {
namespace {

/// Item of a record that ends. Events are in the order of resource, then token or ticket, so that
/// they do not depend on the order of leases.
template <class Record>
struct Ending {
  const Item* item;
  const Record* record;
  std::size_t order;  ///< Index of the record; records are sorted by token or ticket.
};

template <class Record>
std::vector<Ending<Record>> in_name_order(const std::vector<Record>& records) {
  std::vector<Ending<Record>> endings;
  for (const auto& record : records) {
    for (const auto& item : record.items) {
      endings.push_back({&item, &record, endings.size()});
    }
  }
  std::ranges::sort(endings, [](const auto& left, const auto& right) {
    return comes_before(*left.item, *right.item) ||
           (!comes_before(*right.item, *left.item) && left.order < right.order);
  });
  return endings;
}

}  // namespace

// Idempotent for a client that chooses the id: a retry returns the lease as it is. A late copy
// after the end of the lease is refused, because it would recreate the lease.
Outcome Step::operator()(const GrantLease& command) {
  if (auto error = check(command, state_.limits)) {
    return Refused{*std::move(error)};
  }
  if (const auto* known = state_.leases.find(command.id)) {
    // All fields have to match: a client that reuses the id of a live lease gets an error, and not
    // a lease with another ttl.
    const bool is_retry = command.request != RequestId{} && known->request == command.request &&
                          known->client == command.client && known->ttl == command.ttl;
    if (!is_retry) {
      return Refused{{.code = Errc::invalid_argument, .detail = "a lease has this id already"}};
    }
    return LeaseGranted{.id = known->id, .ttl = known->ttl, .deadline = known->deadline};
  }
  if (state_.leases.has_ended(command.id, command.request)) {
    return LeaseLost{command.id};
  }
  if (auto reached = check_limits(command, state_)) {
    return refuse_by_limit(*std::move(reached));
  }
  const auto& lease = state_.leases.add({
      .id = command.id == LeaseId{} ? state_.leases.fresh_id() : command.id,
      .ttl = command.ttl,
      .deadline = state_.now + command.ttl,
      .granted = state_.now,
      .create_revision = state_.revision,
      .request = command.request,
      .client = command.client,
      .address = command.address,
      .last_seen = state_.now,
      .user = is_at_least(version_2) ? SharedString(command.user) : SharedString(),
      .history = {},
  });
  return LeaseGranted{.id = lease.id, .ttl = lease.ttl, .deadline = lease.deadline};
}

// A lost lease is an answer, not an error: one command renews many leases, of which some may have
// expired.
Outcome Step::operator()(const RenewLeases& command) {
  if (auto error = check(command, state_.limits)) {
    return Refused{*std::move(error)};
  }
  Renewed renewed;
  renewed.answers.reserve(command.leases.size());
  visits_.add(command.leases.size());
  for (const auto id : command.leases) {
    // A renewal would keep holds that the client may have released since the backup.
    if (is_unconfirmed(id)) {
      renewed.answers.push_back({.id = id, .ttl = std::nullopt, .is_unconfirmed = true});
      continue;
    }
    auto* lease = state_.leases.edit(id);
    if (lease != nullptr) {
      state_.leases.set_deadline(*lease, state_.now + lease->ttl);
      refresh(*lease);
    }
    renewed.answers.push_back(
        {.id = id, .ttl = lease == nullptr ? std::nullopt : std::optional(lease->ttl)});
  }
  return renewed;
}

void Step::refresh(Lease& lease) {
  lease.last_seen = state_.now;
  if (is_at_least(version_2) && lease.history.finished() > 0) {
    // A lease that sends renewals only also forgets outdated answers.
    forget_answers(lease);
    account(lease.id);
  }
}

// Answers like a renewal of one lease, because clients handle both in the same way.
Outcome Step::operator()(const SetTtl& command) {
  if (is_unconfirmed(command.lease)) {
    return Renewed{{{.id = command.lease, .ttl = std::nullopt, .is_unconfirmed = true}}};
  }
  auto* lease = state_.leases.edit(command.lease);
  if (lease == nullptr) {
    return Renewed{{{.id = command.lease, .ttl = std::nullopt}}};
  }
  lease->last_seen = state_.now;
  if (auto known = find_answer(*lease, command.request, Kind::set_ttl)) {
    // Retry of an applied request: repeat the answer, change nothing.
    return *std::move(known);
  }
  if (auto error = check(command, state_.limits)) {
    Refused refused{*std::move(error)};
    refuse(*lease, command.request, refused);
    return refused;
  }
  lease->ttl = command.ttl;
  state_.leases.set_deadline(*lease, state_.now + command.ttl);
  remember(*lease, command.request,
           {.answer = TtlSet{command.ttl}, .since = state_.revision, .life = History::Life::over});
  return Renewed{{{.id = command.lease, .ttl = command.ttl}}};
}

Outcome Step::operator()(const RevokeLease& command) {
  if (state_.leases.find(command.lease) == nullptr) {
    return LeaseLost{command.lease};
  }
  end_leases(std::array{command.lease}, EventType::revoked);
  return Done{};
}

void Step::end_leases(std::span<const LeaseId> leases, EventType why) {
  // All waits first: a wait that ends in this step must not be granted by a hold that ends in it.
  end_waits_of(leases, why);
  end_holds_of(leases, why);
  for (const auto id : leases) {
    state_.leases.remove(id, time_at(version_2));
    state_.restoration.unconfirmed.erase(id);
    forget_ended();
  }
  // At an expiry this is before the command runs: it finds the locks that expired leases released
  // with their new holders.
  process_touched();
}

// Notices are in the order of tickets and events in the order of names, whatever the order of
// `leases`.
void Step::end_waits_of(std::span<const LeaseId> leases, EventType why) {
  std::vector<Wait> waits;
  for (const auto id : leases) {
    const auto tickets = state_.locks.owned(id).waits;
    for (const auto ticket : tickets) {
      waits.push_back(remove_wait(ticket));
      touch(waits.back().items);
    }
  }
  std::ranges::sort(waits, {}, &Wait::ticket);
  for (const auto& wait : waits) {
    applied_.notices.push_back(
        {.lease = wait.lease, .request = wait.request, .end = LeaseLost{wait.lease}});
  }
  for (const auto& ending : in_name_order(waits)) {
    emit(why, *ending.item, *ending.record, {});
  }
}

void Step::end_holds_of(std::span<const LeaseId> leases, EventType why) {
  std::vector<FencingToken> tokens;
  for (const auto id : leases) {
    std::ranges::copy(state_.locks.owned(id).holds, std::back_inserter(tokens));
  }
  // Losses are in the order in which the locks were acquired, whatever the order of `leases`.
  std::ranges::sort(tokens);
  const auto holds = end_holds(tokens, why);
  for (const auto& hold : holds) {
    applied_.losses.push_back(
        {.lease = hold.lease, .request = hold.request, .token = hold.token, .why = why});
  }
}

// Removes all holds before it emits events, so that the events of several holds are in name order.
std::vector<Hold> Step::end_holds(std::span<const FencingToken> tokens, EventType why) {
  std::vector<Hold> holds;
  for (const auto token : tokens) {
    holds.push_back(state_.locks.remove(token, state_.revision));
    visits_.add(holds.back().items.size());
    touch(holds.back().items);
  }
  for (const auto& ending : in_name_order(holds)) {
    emit(why, *ending.item, *ending.record, ending.record->token);
  }
  return holds;
}

}  // namespace tenure::core
