#pragma once

#include <chrono>

/// How the ttl of a lease and the timeout of the session that carries it belong together.
///
/// A lease lives in our own process: nobody at the servers counts it. What frees its nodes when we
/// die is the end of the session; so that must not come before we stop believing. We believe until
/// `sent + ttl`, where `sent` was before a confirmed round trip to the leader. The leader counts
/// from the last it was told of us: if we talk to a follower, that may be as old as our last but
/// one sign of life (at most a beat, below) and half a tick, after which followers report. Hence
///
///   timeout >= ttl + timeout / beats + half a tick
///
/// docs/decisions/0020 has the whole argument.
namespace tenure::backends::zookeeper {

using std::chrono::milliseconds;

/// So often in its timeout does a session give a sign of life, whatever else it does.
inline constexpr int heartbeats_per_timeout = 6;
/// What followers may be late by, and servers may pause for: half of ZooKeeper's usual tick of 2 s.
inline constexpr milliseconds slack{1000};

/// The pause between two of those, in a session of which the servers made this.
[[nodiscard]] constexpr milliseconds heartbeat_interval(milliseconds timeout) noexcept {
  return timeout / heartbeats_per_timeout;
}

/// What is asked of the servers for leases of this ttl.
[[nodiscard]] constexpr milliseconds timeout_for(milliseconds ttl) noexcept {
  return ttl * 4 / 3 + slack;
}

/// The longest ttl that a session with this timeout can carry.
[[nodiscard]] constexpr milliseconds longest_ttl(milliseconds timeout) noexcept {
  return timeout * (heartbeats_per_timeout - 1) / heartbeats_per_timeout - slack;
}

/// The shortest ttl whose locks come free in time, where no timeout is shorter than this.
[[nodiscard]] constexpr milliseconds shortest_ttl(milliseconds timeout) noexcept {
  return (timeout - slack) * 3 / 4;
}

}  // namespace tenure::backends::zookeeper
