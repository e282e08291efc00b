#pragma once

#include <functional>
#include <optional>
#include <vector>

#include <boost/asio/io_context.hpp>

#include "server/raft/entry.hpp"
#include "server/raft/message.hpp"
#include "server/raft/versions.hpp"

namespace tenure::server::raft {

/// How members reach each other. Messages between two members arrive in the order in which they
/// were sent, or not at all; never twice. A sender is who it says it is.
///
/// All calls come on the thread of the loop, and so does `receive`.
class Transport {
 public:
  using Receive = std::function<void(MemberId sender, Message message)>;

  virtual ~Transport() = default;

  virtual void start(boost::asio::io_context& loop, Receive receive) = 0;
  /// Who takes part from now on, and where. Connections to others end.
  virtual void set_members(const std::vector<Member>& members) = 0;
  /// Never waits. What cannot be sent, because the peer is away or too slow, is dropped. So is a
  /// snapshot for a peer to whom the same one is still on its way: the leader asks again until it
  /// has arrived, and cannot know how far it is.
  virtual void send(MemberId peer, Message message) = 0;
  /// Whether a snapshot for this peer would not be dropped now: it can be large, so whoever would
  /// have to read it asks first. One that is on its way goes on as one of this term, should that be
  /// newer.
  [[nodiscard]] virtual bool takes_snapshot(MemberId /*peer*/, Term /*term*/) { return true; }
  /// What the peer announced on the connection that send() uses; empty: there is none.
  [[nodiscard]] virtual std::optional<Versions> versions_of(MemberId /*peer*/) const {
    return newest_versions();
  }
  /// Nothing is received after it returns.
  virtual void stop() = 0;
};

}  // namespace tenure::server::raft
