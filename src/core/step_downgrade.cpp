#include <algorithm>
#include <string>
#include <utility>

#include "core/step.hpp"

namespace tenure::core {
namespace {

Refused invalid_downgrade(std::string detail) {
  return {.error = {.code = Errc::invalid_argument, .detail = std::move(detail)}};
}

}  // namespace

// A downgrade to the present mode succeeds without an event, so that a client need not know the
// mode that it has.
Outcome Step::operator()(const Downgrade& command) {
  auto* lease = state_.leases.edit(command.lease);
  if (lease == nullptr) {
    return LeaseLost{command.lease};
  }
  lease->last_seen = state_.now;
  if (auto known = find_answer(*lease, command.request, Kind::downgrade)) {
    // Retry of an applied request: repeat the answer, change nothing.
    return *std::move(known);
  }
  if (auto refused = refusal_of(command)) {
    refuse(*lease, command.request, *refused);
    return *std::move(refused);
  }
  const Downgraded downgraded{.mode = command.mode};
  if (mode_of(state_.locks.find(command.token)->items.front()) != command.mode) {
    state_.locks.downgrade(command.token, command.mode, state_.revision);
    const auto& hold = *state_.locks.find(command.token);
    emit(EventType::downgraded, hold.items.front(), hold, command.token);
    touch(hold.items);
  }
  remember(*lease, command.request,
           {.answer = downgraded, .since = state_.revision, .life = History::Life::over});
  return downgraded;
}

// While an upgrade of the hold waits, a downgrade would contradict it, and the wait would upgrade a
// mode that it was not computed from.
std::optional<Refused> Step::refusal_of(const Downgrade& command) const {
  const auto* hold = state_.locks.find(command.token);
  if (hold == nullptr || hold->lease != command.lease) {
    return Refused{{.code = Errc::not_held, .detail = "no hold of this lease has this token"}};
  }
  if (hold->items.size() > 1) {
    return invalid_downgrade(
        "several items were acquired at once; only a hold of one can be downgraded");
  }
  const auto& item = hold->items.front();
  if (std::holds_alternative<Permits>(item.claim)) {
    return invalid_downgrade("a semaphore has no mode to be downgraded");
  }
  if (!covers(mode_of(item), command.mode)) {
    return invalid_downgrade("it is held in " + std::string(to_string(mode_of(item))) +
                             ", which does not cover " + std::string(to_string(command.mode)));
  }
  const bool is_upgrading = std::ranges::any_of(
      state_.locks.owned(command.lease).waits,
      [&](Revision ticket) { return state_.locks.find(ticket)->upgrades == command.token; });
  if (is_upgrading) {
    return invalid_downgrade("an upgrade of this hold waits; abandon it first");
  }
  return std::nullopt;
}

}  // namespace tenure::core
