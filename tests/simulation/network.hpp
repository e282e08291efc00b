#pragma once

#include <cstddef>
#include <functional>
#include <set>
#include <utility>
#include <vector>

#include "simulation/world.hpp"

namespace tenure::simulation {

/// Network endpoint: hosts of members first, then clients.
using Endpoint = std::size_t;

/// Simulated network: delivers, drops, delays, duplicates and reorders messages, and partitions
/// endpoints.
class Network {
 public:
  Network(World& world, std::size_t endpoints);

  /// Sends a message; `deliver` runs on its arrival. FIFO per pair of endpoints unless the run
  /// reorders.
  void send(Endpoint from, Endpoint to, World::Task deliver);
  /// Sends on a stream such as a watch: in order, at most once, or lost.
  void stream(Endpoint from, Endpoint to, World::Task deliver);

  void cut(Endpoint from, Endpoint to) { cuts_.insert({from, to}); }
  void isolate(Endpoint endpoint);
  void heal_all() { cuts_.clear(); }
  void set_delay(VirtualTime delay) { delay_ = delay; }
  [[nodiscard]] std::size_t endpoints() const noexcept { return endpoints_; }
  [[nodiscard]] std::size_t lost() const noexcept { return lost_; }

 private:
  [[nodiscard]] bool loses(Endpoint from, Endpoint to);
  [[nodiscard]] VirtualTime& last(Endpoint from, Endpoint to) {
    return last_[from * endpoints_ + to];
  }
  [[nodiscard]] VirtualTime delay();
  void arrive(Endpoint from, Endpoint to, VirtualTime when, World::Task deliver);

  World& world_;
  std::size_t endpoints_;
  VirtualTime delay_;
  std::set<std::pair<Endpoint, Endpoint>> cuts_;
  std::vector<VirtualTime> last_;  ///< Arrival time of the last message of each pair.
  std::size_t lost_ = 0;
};

}  // namespace tenure::simulation
