#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/ids.hpp"
#include "core/state.hpp"

namespace tenure::core {

/// Client record, derived from the leases of the client. A client without a lease has none.
struct Client {
  std::string id{};  ///< Never empty: a lease without a client id belongs to no client.
  std::set<LeaseId> leases{};
  std::size_t holds = 0;    ///< Granted requests under all its leases.
  std::size_t waits = 0;    ///< Requests in queues under all its leases.
  std::string address{};    ///< Address of the lease that was seen last.
  ClusterTime last_seen{};  ///< Time of the last command under any of its leases.

  friend bool operator==(const Client&, const Client&) = default;
};

[[nodiscard]] std::optional<Client> find_client(const State& state, const std::string& id);
/// All clients, by id.
[[nodiscard]] std::vector<Client> all_clients(const State& state);

}  // namespace tenure::core
