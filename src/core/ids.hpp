#pragma once

#include <chrono>
#include <cstdint>

#include <tenure/ids.hpp>

namespace tenure::core {

// Ids of the public headers: clients see the numbers that the state machine assigns. Each change
// takes a new revision. The token of a grant is its revision.
using tenure::FencingToken;
using tenure::LeaseId;
using tenure::RequestId;
using tenure::RequestKey;
using tenure::Revision;

/// Cluster time: time since the creation of the cluster, as the leader counts it. Not a wall clock.
using ClusterTime = std::chrono::microseconds;

/// Time and revision of a log entry. The state machine has no other source of time.
struct Stamp {
  /// Cluster time of the entry. Time never goes back: an earlier one counts as the last.
  ClusterTime time{};
  /// Lower bound for the revision of the command; 0: the next one. A store restored from an old
  /// backup gets a revision beyond all that were ever assigned, so that no token repeats.
  Revision revision{};

  friend bool operator==(const Stamp&, const Stamp&) = default;
};

}  // namespace tenure::core
