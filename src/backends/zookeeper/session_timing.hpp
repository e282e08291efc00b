#pragma once

#include <chrono>

/// Relation between the TTL of a lease and the timeout of the session that carries it.
///
/// The servers do not know leases; they delete the nodes of a dead client when its session expires.
/// The session must therefore outlive the lease deadline of the client. The client trusts a lease
/// until `sent + ttl`, where `sent` precedes a confirmed round trip to the leader. The leader
/// counts the timeout from the last sign of life that it knows; if the client is connected to a
/// follower, that can be older by one heartbeat interval plus half a tick, because followers report
/// after half a tick. Hence
///
///   timeout >= ttl + timeout / heartbeats + half a tick
///
/// docs/decisions/0020 contains the full argument.
namespace tenure::backends::zookeeper {

using std::chrono::milliseconds;

/// Heartbeats per session timeout, sent regardless of other traffic.
inline constexpr int heartbeats_per_timeout = 6;
/// Delay of follower reports and server pauses: half of ZooKeeper's default tick of 2 s.
inline constexpr milliseconds slack{1000};

/// Heartbeat interval of a session with this negotiated timeout.
[[nodiscard]] constexpr milliseconds heartbeat_interval(milliseconds timeout) noexcept {
  return timeout / heartbeats_per_timeout;
}

/// Session timeout to request for leases of this TTL.
[[nodiscard]] constexpr milliseconds timeout_for(milliseconds ttl) noexcept {
  return ttl * 4 / 3 + slack;
}

/// Longest TTL that a session with this timeout can carry.
[[nodiscard]] constexpr milliseconds longest_ttl(milliseconds timeout) noexcept {
  return timeout * (heartbeats_per_timeout - 1) / heartbeats_per_timeout - slack;
}

/// Shortest TTL whose locks expire in time if the servers grant no shorter timeout than this.
[[nodiscard]] constexpr milliseconds shortest_ttl(milliseconds timeout) noexcept {
  return (timeout - slack) * 3 / 4;
}

}  // namespace tenure::backends::zookeeper
