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
struct ReadRequest {
  std::string name;
};
/// All events from this revision on; 0: from now on.
struct WatchRequest {
  core::Revision start{};
};

struct Request {
  Endpoint client{};
  std::uint64_t number{};  ///< Of the client's questions; the answer has it too.
  std::variant<core::Command, ReadRequest, WatchRequest> what;
};

struct ReadResult {
  core::Revision revision{};  ///< Of the state that was looked at.
  std::vector<core::FencingToken> holders{};
};
struct WatchStarted {
  core::Revision revision{};  ///< Everything after it will be told.
};
/// The watch has to begin anew.
struct WatchLost {};
struct WatchEvents {
  std::uint64_t sequence{};  ///< Counted from 0; a gap means that some were lost on the way.
  std::vector<std::shared_ptr<const core::Event>> events;
};

struct Reply {
  std::uint64_t number{};
  Endpoint from{};
  std::uint64_t leader{};  ///< Its id, if it is known; 0: not.
  std::variant<core::Outcome, Error, ReadResult, WatchStarted, WatchLost, WatchEvents> what;
};

/// Who asks, and is answered.
class Requester {
 public:
  Requester() = default;
  Requester(const Requester&) = delete;
  Requester& operator=(const Requester&) = delete;
  virtual ~Requester() = default;

  virtual void handle_reply(const Reply& answer) = 0;
};

class Host;

/// Who is where.
struct Directory {
  std::vector<Host*> hosts;
  std::map<Endpoint, Requester*> requesters;
};

}  // namespace tenure::simulation
