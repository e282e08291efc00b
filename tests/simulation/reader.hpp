#pragma once

#include <cstdint>
#include <map>

#include "core/ids.hpp"
#include "simulation/checker.hpp"
#include "simulation/network.hpp"
#include "simulation/protocol.hpp"
#include "simulation/world.hpp"

namespace tenure::simulation {

/// Client of linearizable reads in the most dangerous situations: of a leader that has been deposed
/// by another one, and of a new leader that may not have applied all acknowledged commands yet. It
/// selects the host with global knowledge; its requests use the same network and calls as those of
/// clients.
class Reader final : public Requester {
 public:
  Reader(World& world, Network& network, Checker& checker, Directory& directory, Endpoint endpoint)
      : world_(world),
        network_(network),
        checker_(checker),
        directory_(directory),
        endpoint_(endpoint) {}

  void begin() { poll_later(); }
  void handle_reply(const Reply& answer) override;

 private:
  void poll_later();
  void poll();
  void ask(Endpoint host);

  World& world_;
  Network& network_;
  Checker& checker_;
  Directory& directory_;
  Endpoint endpoint_;
  std::uint64_t newest_term_ = 0;  ///< Newest term with a leader.
  VirtualTime elected_{};          ///< Time at which the term was first seen.
  std::uint64_t last_number_ = 0;
  std::map<std::uint64_t, core::Revision>
      asked_;  ///< Acknowledged revision at the start of each read.
};

}  // namespace tenure::simulation
