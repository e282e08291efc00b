#include "core/clients.hpp"

namespace tenure::core {
namespace {

Client describe(const State& state, const std::string& id, const std::set<LeaseId>& leases) {
  Client client{.id = id, .leases = leases};
  for (const auto lease_id : leases) {
    // The index by client lists live leases only, so the lookup succeeds.
    const auto& lease = *state.leases.find(lease_id);
    const auto& owned = state.locks.owned(lease_id);
    client.holds += owned.holds.size();
    client.waits += owned.waits.size();
    // With equal times the greater lease id decides, which is the same on every member.
    if (lease.last_seen >= client.last_seen) {
      client.last_seen = lease.last_seen;
      client.address = lease.address;
    }
  }
  return client;
}

}  // namespace

std::optional<Client> find_client(const State& state, const std::string& id) {
  const auto& leases = state.leases.of_client(id);
  return leases.empty() ? std::nullopt : std::optional(describe(state, id, leases));
}

std::vector<Client> all_clients(const State& state) {
  std::vector<Client> clients;
  for (const auto& [id, leases] : state.leases.clients()) {
    clients.push_back(describe(state, id, leases));
  }
  return clients;
}

}  // namespace tenure::core
