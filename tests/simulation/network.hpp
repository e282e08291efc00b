#pragma once

#include <cstddef>
#include <functional>
#include <set>
#include <utility>
#include <vector>

#include "simulation/world.hpp"

namespace tenure::simulation {

/// Where messages come from and go to: hosts of members first, then clients.
using Endpoint = std::size_t;

/// Carries messages, or loses, delays, doubles and reorders them, and knows who cannot reach whom.
class Network {
 public:
  Network(World& world, std::size_t endpoints);

  /// What arrives is what `deliver` does. What follows it on the same way does not overtake it,
  /// unless the run reorders.
  void send(Endpoint from, Endpoint to, World::Task deliver);
  /// The same for a stream such as a watch: in order and never twice, or lost.
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
  std::vector<VirtualTime> last_;  ///< When the last message on each way arrives.
  std::size_t lost_ = 0;
};

}  // namespace tenure::simulation
