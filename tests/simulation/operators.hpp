#pragma once

#include <functional>
#include <string>
#include <vector>

#include "server/raft/entry.hpp"
#include "simulation/host.hpp"
#include "simulation/protocol.hpp"
#include "simulation/world.hpp"

namespace tenure::simulation {

/// What operators do to a cluster. While things break they only try; afterwards everything that
/// they may ask for has to work: to add a member, to make it lead, to remove another, and all that
/// from each member in turn; and to replace one that is dead.
class Operators {
 public:
  Operators(World& world, Directory& directory) : world_(world), directory_(directory) {}

  /// Asks whoever leads for something, by chance.
  void disturb();
  /// Fails the run if something stays impossible. REQUIRES: the faults are over.
  void check_liveness();

 private:
  using Done = Host::Done;

  void check_replacement(Host& guest);
  /// Asks again and again until it is so.
  [[nodiscard]] bool retry_until(const std::string& what, const std::function<void(Done)>& ask,
                                 const std::function<bool()>& is_done);
  [[nodiscard]] bool add(Host& host);
  [[nodiscard]] bool remove(Host& host);
  /// Lets one die and another come in its place.
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
