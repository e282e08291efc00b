#pragma once

#include <chrono>
#include <cstdint>

#include <tenure/strong.hpp>

namespace tenure::core {

/// A moment in the history of the store. Every change takes the next one; none is used twice.
using Revision = Strong<std::uint64_t, struct RevisionTag>;

/// What a holder shows to storage: the revision of its grant, so it grows over the whole store.
using FencingToken = Strong<std::uint64_t, struct FencingTokenTag>;

/// Whose life a hold or a wait hangs on. 0 is no lease.
using LeaseId = Strong<std::uint64_t, struct LeaseIdTag>;

/// One request of a lease, chosen by the client; the same id again is a retry. 0 is no id.
using RequestId = Strong<std::uint64_t, struct RequestIdTag>;

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
