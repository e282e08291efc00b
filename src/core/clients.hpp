#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/ids.hpp"
#include "core/state.hpp"

namespace tenure::core {

/// Who stands behind leases. It is known while it has one; all of it follows from them.
struct Client {
  std::string id{};  ///< Never empty: a lease without a client is nobody's.
  std::set<LeaseId> leases{};
  std::size_t holds = 0;    ///< Granted requests under all its leases.
  std::size_t waits = 0;    ///< Requests in queues, likewise.
  std::string address{};    ///< Of the lease that was seen last.
  ClusterTime last_seen{};  ///< The last command in the name of any of them.

  friend bool operator==(const Client&, const Client&) = default;
};

[[nodiscard]] std::optional<Client> find_client(const State& state, const std::string& id);
/// All of them, by id.
[[nodiscard]] std::vector<Client> all_clients(const State& state);

}  // namespace tenure::core
