#include "core/restore.hpp"

#include <algorithm>
#include <vector>

#include "core/usage.hpp"

namespace tenure::core {
namespace {

std::vector<LeaseId> ids_of(const LeaseTable& leases) {
  std::vector<LeaseId> ids;
  for (const auto& [id, lease] : leases.all()) {
    ids.push_back(id);
  }
  return ids;
}

// Restored waits may have been granted after the backup, so no client can rely on them.
void drop_waits(State& state) {
  std::vector<Revision> tickets;
  for (const auto& [ticket, wait] : state.locks.waits()) {
    tickets.push_back(ticket);
  }
  for (const auto ticket : tickets) {
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
  for (const auto id : ids_of(state.leases)) {
    auto& lease = *state.leases.edit(id);
    state.leases.set_deadline(lease, state.now + lease.ttl);
    state.restoration.unconfirmed.insert(id);
  }
  recount_bytes(state);
}

void drop_leases(State& state) {
  drop_waits(state);
  std::vector<FencingToken> tokens;
  for (const auto& [token, hold] : state.locks.holds()) {
    tokens.push_back(token);
  }
  for (const auto token : tokens) {
    state.locks.remove(token, state.revision);
  }
  for (const auto id : ids_of(state.leases)) {
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
