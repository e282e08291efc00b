#pragma once

#include <functional>
#include <string>
#include <vector>

#include "server/raft/entry.hpp"
#include "simulation/host.hpp"
#include "simulation/protocol.hpp"
#include "simulation/world.hpp"

namespace tenure::simulation {

/// Operator actions on the cluster. During faults they are attempts. After the heal every action
/// has to succeed: adding a member, transferring the leadership to it, removing another one, from
/// each member in turn, and replacing a dead member.
class Operators {
 public:
  Operators(World& world, Directory& directory) : world_(world), directory_(directory) {}

  /// Sends a random action to the leader.
  void disturb();
  /// Fails the run if an action does not succeed. REQUIRES: the faults have ended.
  void check_liveness();

 private:
  using Done = Host::Done;

  void check_replacement(Host& candidate);
  /// Repeats an action until its condition holds.
  [[nodiscard]] bool retry_until(const std::string& what, const std::function<void(Done)>& ask,
                                 const std::function<bool()>& is_done);
  [[nodiscard]] bool add(Host& host);
  [[nodiscard]] bool remove(Host& host);
  /// Crashes one member for good and replaces it with another.
  [[nodiscard]] bool replace(Host& dead, Host& by);
  [[nodiscard]] bool transfer_to(Host& host);
  [[nodiscard]] Host* leader() const;
  [[nodiscard]] bool is_voter(const Host& host) const;
  [[nodiscard]] bool is_member(const Host& host) const;
  [[nodiscard]] std::vector<Host*> voters() const;
  [[nodiscard]] static server::AddMember addition(const Host& host);

  World& world_;
  Directory& directory_;
};

}  // namespace tenure::simulation
