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

// Messages between clients and servers: the content of gRPC calls without gRPC.

/// Linearizable read of one name.
struct ReadRequest {
  std::string name;
};
/// Watch of all events from this revision on; 0: new events only.
struct WatchRequest {
  core::Revision start{};
};

struct Request {
  Endpoint client{};
  std::uint64_t number{};  ///< Request number of the client; repeated in the reply.
  std::variant<core::Command, ReadRequest, WatchRequest> what;
};

struct ReadResult {
  core::Revision revision{};  ///< Revision of the state that was read.
  std::vector<core::FencingToken> holders{};
};
struct WatchStarted {
  core::Revision revision{};  ///< Last revision before the first event.
};
/// The watch was cancelled and has to be restarted.
struct WatchLost {};
struct WatchEvents {
  std::uint64_t sequence{};  ///< Sequence number from 0; a gap means lost messages.
  std::vector<std::shared_ptr<const core::Event>> events;
};

struct Reply {
  std::uint64_t number{};
  Endpoint from{};
  std::uint64_t leader{};  ///< Id of the leader; 0: unknown.
  std::variant<core::Outcome, Error, ReadResult, WatchStarted, WatchLost, WatchEvents> what;
};

/// Sender of requests.
class Requester {
 public:
  Requester() = default;
  Requester(const Requester&) = delete;
  Requester& operator=(const Requester&) = delete;
  virtual ~Requester() = default;

  virtual void handle_reply(const Reply& answer) = 0;
};

class Host;

/// Directory of the hosts and requesters by endpoint.
struct Directory {
  std::vector<Host*> hosts;
  std::map<Endpoint, Requester*> requesters;
};

}  // namespace tenure::simulation
