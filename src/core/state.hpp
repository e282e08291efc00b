#pragma once

#include <set>

#include "core/event_ring.hpp"
#include "core/ids.hpp"
#include "core/lease_table.hpp"
#include "core/limits.hpp"
#include "core/lock_table.hpp"
#include "core/version.hpp"

namespace tenure::core {

/// What a state that was restored from a backup has to wait for. The backup may lack grants and
/// releases that clients know of (core/restore.hpp).
struct Restoration {
  ClusterTime until{};  ///< Nothing is granted before. 0: the state was not restored.
  /// Restored leases whose clients have not sent ConfirmHolds. They are not renewed, and end at
  /// `until` at the latest. INVARIANT: they live.
  std::set<LeaseId> unconfirmed{};

  [[nodiscard]] bool is_active() const noexcept { return until != ClusterTime{}; }

  friend bool operator==(const Restoration&, const Restoration&) = default;
};

/// Everything the store knows. A value: two that took the same commands are the same.
struct State {
  ClusterVersion version = oldest_version;
  Limits limits;
  /// INVARIANT: never decreases, also across snapshots: a token that came twice would let a dead
  /// holder write.
  Revision revision{};
  ClusterTime now{};  ///< Of the last stamp. Never decreases either.
  LeaseTable leases;
  LockTable locks;
  EventRing events;
  Restoration restoration;
};

}  // namespace tenure::core
