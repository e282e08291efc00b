#include "core/version.hpp"

#include <utility>

#include "core/limits.hpp"
#include "core/state.hpp"

namespace tenure::core {
namespace {

/// Removes the fields of events that version 1 lacks.
EventRing without_users(const EventRing& events) {
  EventRing stripped;
  stripped.compact(events.compact_revision());
  for (auto event : events.all().in_order()) {
    event.user = {};
    event.operator_name = {};
    event.reason = {};
    stripped.append(std::move(event));
  }
  return stripped;
}

}  // namespace

// The result has to equal the state of a member that was restored from a snapshot in the new
// format. So it removes exactly what that format lacks.
void convert(State& state, ClusterVersion version) {
  if (version == state.version) {
    return;
  }
  state.version = version;
  state.limits = at_version(state.limits, version);
  // Version 1 has no times: answers from before the upgrade count as finished now.
  const auto answered = version < version_2 ? ClusterTime{} : state.now;
  state.leases.set_ended_times(answered);
  for (const auto id : state.leases.all().keys()) {
    auto& lease = *state.leases.edit(id);
    lease.history.set_finished_times(answered);
    if (version < version_2) {
      lease.user = {};
    }
  }
  if (version < version_2) {
    state.leases.forget_ended({.ended_max = LeaseTable::ended_max(version)});
    state.events = without_users(state.events);
    state.restoration = {};
  }
  recount_bytes(state);
}

}  // namespace tenure::core
