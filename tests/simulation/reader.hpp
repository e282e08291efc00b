#pragma once

#include <cstdint>
#include <map>

#include "core/ids.hpp"
#include "simulation/judge.hpp"
#include "simulation/network.hpp"
#include "simulation/protocol.hpp"
#include "simulation/world.hpp"

namespace tenure::simulation {

/// Asks for linearizable reads where they are most likely to be wrong: of a leader beside which
/// another leads already, and of one that leads since a moment ago and may not know yet what was
/// acknowledged before. It sees whom to ask as nobody in the world could; the answers it judges
/// come by the network and through the same calls as anybody's.
class Reader final : public Requester {
 public:
  Reader(World& world, Network& network, Judge& judge, Directory& directory, Endpoint endpoint)
      : world_(world),
        network_(network),
        judge_(judge),
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
  Judge& judge_;
  Directory& directory_;
  Endpoint endpoint_;
  std::uint64_t newest_term_ = 0;  ///< With a leader.
  VirtualTime elected_{};          ///< When that was seen.
  std::uint64_t last_number_ = 0;
  std::map<std::uint64_t, core::Revision> asked_;  ///< What was acknowledged by then.
};

}  // namespace tenure::simulation
