#pragma once

#include <functional>
#include <optional>
#include <vector>

#include <boost/asio/io_context.hpp>

#include "server/raft/entry.hpp"
#include "server/raft/message.hpp"
#include "server/raft/versions.hpp"

namespace tenure::server::raft {

/// Interface of the message transport between members. Guarantees: messages between two members
/// arrive in order, at most once, or not at all; senders are authenticated.
///
/// Not thread safe: all calls, and `receive`, run on the loop's thread.
class Transport {
 public:
  using Receive = std::function<void(MemberId sender, Message message)>;

  virtual ~Transport() = default;

  virtual void start(boost::asio::io_context& loop, Receive receive) = 0;
  /// Replaces the member list with addresses. Closes connections to other members.
  virtual void set_members(const std::vector<Member>& members) = 0;
  /// Never blocks. Drops the message if the peer is disconnected or too slow, and drops a snapshot
  /// while another one is being sent to the peer: Raft repeats both.
  virtual void send(MemberId peer, Message message) = 0;
  /// Whether send() would accept a snapshot for this peer. Checked before a large snapshot is read
  /// from disk. A transfer in progress continues in this term if the term is newer.
  [[nodiscard]] virtual bool takes_snapshot(MemberId /*peer*/, Term /*term*/) { return true; }
  /// Versions that the peer announced on the connection that send() uses; empty: not connected.
  [[nodiscard]] virtual std::optional<Versions> versions_of(MemberId /*peer*/) const {
    return newest_versions();
  }
  /// Calls `receive` no more after it returns.
  virtual void stop() = 0;
};

}  // namespace tenure::server::raft
