#pragma once

#include <chrono>
#include <cstdint>

#include <tenure/ids.hpp>

namespace tenure::core {

// The ids of the public headers: what the state machine decides is what the user sees. A revision
// is taken by one change and never again. The token of a grant is its revision.
using tenure::FencingToken;
using tenure::LeaseId;
using tenure::RequestId;
using tenure::RequestKey;
using tenure::Revision;

/// Cluster time: since the cluster began, as the leader counts it. Not a wall clock.
using ClusterTime = std::chrono::microseconds;

/// What the log adds to a command. The state machine knows no other time.
struct Stamp {
  /// The cluster time of the entry. One that is smaller than the last counts as the last.
  ClusterTime time{};
  /// The command takes at least this revision. 0: simply the next one. A store restored from an
  /// old backup is given a revision beyond all that were ever handed out, so that no token returns.
  Revision revision{};

  friend bool operator==(const Stamp&, const Stamp&) = default;
};

}  // namespace tenure::core
