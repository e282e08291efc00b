#pragma once

#include <cstddef>
#include <vector>

#include "simulation/client.hpp"
#include "simulation/host.hpp"
#include "simulation/network.hpp"
#include "simulation/operators.hpp"
#include "simulation/world.hpp"

namespace tenure::simulation {

/// Fault injector: schedules random faults of hosts, clients, disks and the network.
class Faults {
 public:
  Faults(World& world, Network& network, Operators& operators, std::vector<Host*> hosts,
         std::vector<Client*> clients);

  void begin() { next(); }
  /// Ends all faults.
  void end();
  [[nodiscard]] std::size_t total() const noexcept { return total_; }
  [[nodiscard]] std::size_t crashes() const noexcept { return crashes_; }

 private:
  void next();
  void break_something();
  void break_network();
  void break_host(Host& host);
  void break_client(Client& client);
  void depose_leader();
  void cut_from_members(std::size_t alone);
  [[nodiscard]] std::size_t victim();
  void crash(Host& host);

  World& world_;
  Network& network_;
  Operators& operators_;
  std::vector<Host*> hosts_;
  std::vector<Client*> clients_;
  std::size_t total_ = 0;
  std::size_t crashes_ = 0;
};

}  // namespace tenure::simulation
