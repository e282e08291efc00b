#include "core/restore.hpp"

#include <algorithm>

#include "core/usage.hpp"

namespace tenure::core {
namespace {

// Restored waits may have been granted after the backup, so no client can rely on them.
void drop_waits(State& state) {
  for (const auto ticket : state.locks.waits().keys()) {
    const auto wait = state.locks.remove(ticket);
    state.leases.uncount_wait(wait.lease);
    state.leases.edit(wait.lease)->history.remove(wait.request);
  }
}

}  // namespace

void begin_restoration(State& state, ClusterTime longest_ttl) {
  convert(state, std::max(state.version, version_2));
  drop_waits(state);
  state.restoration = {.until = state.now + longest_ttl};
  for (const auto id : state.leases.all().keys()) {
    auto& lease = *state.leases.edit(id);
    state.leases.set_deadline(lease, state.now + lease.ttl);
    state.restoration.unconfirmed.insert(id);
  }
  recount_bytes(state);
}

void drop_leases(State& state) {
  drop_waits(state);
  for (const auto token : state.locks.holds().keys()) {
    state.locks.remove(token, state.revision);
  }
  for (const auto id : state.leases.all().keys()) {
    state.leases.remove(id, state.version < version_2 ? ClusterTime{} : state.now);
    state.leases.forget_ended({.ended_max = LeaseTable::ended_max(state.version)});
  }
  state.restoration.unconfirmed.clear();
}

ClusterTime longest_ttl(const State& state) {
  ClusterTime longest{};
  for (const auto& [id, lease] : state.leases.all()) {
    longest = std::max(longest, lease->ttl);
  }
  return longest;
}

}  // namespace tenure::core
