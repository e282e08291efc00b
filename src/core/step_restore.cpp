#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <utility>

#include "core/step.hpp"

namespace tenure::core {

// Nothing was granted during the grace period, so every wait may be admissible now: touches all
// resources that have waits.
std::vector<LeaseId> Step::end_restoration() {
  auto& restoration = state_.restoration;
  if (!is_restoring() || state_.now < restoration.until) {
    return {};
  }
  std::vector<LeaseId> leases(restoration.unconfirmed.begin(), restoration.unconfirmed.end());
  restoration = {};
  for (const auto& [ticket, wait] : state_.locks.waits()) {
    visits_.add(wait->items.size());
    for (const auto& item : wait->items) {
      const auto [touched, is_new] = touched_.try_emplace(item.resource());
      if (is_new && item.kind() == ResourceKind::space) {
        touched->second.push_back(BytesRange::all());
      }
    }
  }
  return leases;
}

// A client whose holds the state cannot confirm loses its lease: it relies on a lock that may be
// granted to another client after the grace period.
Outcome Step::operator()(const ConfirmHolds& command) {
  if (command.tokens.size() > state_.limits.items_per_lease_max) {
    return Refused{{.code = Errc::invalid_argument,
                    .detail = "holds of one lease: at most " +
                              std::to_string(state_.limits.items_per_lease_max)}};
  }
  const Renewed lost{{{.id = command.lease, .ttl = std::nullopt}}};
  if (state_.leases.find(command.lease) == nullptr) {
    return lost;
  }
  if (is_unconfirmed(command.lease) && !confirm(command)) {
    end_leases(std::array{command.lease}, EventType::expired);
    return lost;
  }
  auto& lease = *state_.leases.edit(command.lease);
  state_.leases.set_deadline(lease, state_.now + lease.ttl);
  refresh(lease);
  return Renewed{{{.id = lease.id, .ttl = lease.ttl}}};
}

// First checks all tokens, then changes the state: a refused confirmation ends the lease as a
// whole. Holds that the client did not send were released after the backup, and end. The counts are
// those of the client, which may have released some reentries since.
bool Step::confirm(const ConfirmHolds& command) {
  visits_.add(command.tokens.size());
  std::map<FencingToken, std::uint32_t> counts;
  for (const auto token : command.tokens) {
    const auto* hold = state_.locks.find(token);
    const auto count = ++counts[token];
    if (hold == nullptr || hold->lease != command.lease || count > state_.limits.reentries_max ||
        (count > 1 && hold->items.size() > 1)) {
      return false;
    }
  }
  std::vector<FencingToken> others;
  const auto& held = state_.locks.owned(command.lease).holds;
  std::ranges::copy_if(held, std::back_inserter(others),
                       [&](FencingToken token) { return !counts.contains(token); });
  auto& lease = *state_.leases.edit(command.lease);
  for (const auto token : others) {
    lease.history.retire(state_.locks.find(token)->request, state_.revision, state_.now);
    forget_answers(lease);
  }
  end_holds(others, EventType::expired);
  for (const auto& [token, count] : counts) {
    state_.locks.set_count(token, count);
  }
  state_.restoration.unconfirmed.erase(command.lease);
  account(command.lease);
  return true;
}

}  // namespace tenure::core
