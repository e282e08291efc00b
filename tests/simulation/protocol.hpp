#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include <tenure/error.hpp>

#include "core/command.hpp"
#include "core/outcome.hpp"
#include "simulation/network.hpp"

namespace tenure::simulation {

// What clients and servers say to each other, as far as the simulation needs it: the content of
// gRPC calls without gRPC.

/// A linearizable look at one name.
struct ReadName {
  std::string name;
};
/// All events from this revision on; 0: from now on.
struct WatchFrom {
  core::Revision start{};
};

struct Ask {
  Endpoint client{};
  std::uint64_t number{};  ///< Of the client's questions; the answer has it too.
  std::variant<core::Command, ReadName, WatchFrom> what;
};

struct Sight {
  core::Revision revision{};  ///< Of the state that was looked at.
  std::vector<core::FencingToken> holders{};
};
struct WatchBegan {
  core::Revision revision{};  ///< Everything after it will be told.
};
/// The watch has to begin anew.
struct WatchLost {};
struct WatchEvents {
  std::uint64_t place{};  ///< Counted from 0; a gap means that some were lost on the way.
  std::vector<std::shared_ptr<const core::Event>> events;
};

struct Answer {
  std::uint64_t number{};
  Endpoint from{};
  std::uint64_t leader{};  ///< Its id, if it is known; 0: not.
  std::variant<core::Outcome, Error, Sight, WatchBegan, WatchLost, WatchEvents> what;
};

/// Who asks, and is answered.
class Asker {
 public:
  Asker() = default;
  Asker(const Asker&) = delete;
  Asker& operator=(const Asker&) = delete;
  virtual ~Asker() = default;

  virtual void answered(const Answer& answer) = 0;
};

class Host;

/// Who is where.
struct Directory {
  std::vector<Host*> hosts;
  std::map<Endpoint, Asker*> askers;
};

}  // namespace tenure::simulation
