#pragma once

#include <set>

#include "core/event_ring.hpp"
#include "core/ids.hpp"
#include "core/lease_table.hpp"
#include "core/limits.hpp"
#include "core/lock_table.hpp"
#include "core/version.hpp"

namespace tenure::core {

/// Grace period after a restore from a backup, which may lack grants and releases that clients rely
/// on (core/restore.hpp).
struct Restoration {
  ClusterTime until{};  ///< End of the grace period: nothing is granted before. 0: not restored.
  /// Restored leases whose clients have not sent ConfirmHolds. They are not renewed, and end at
  /// `until` at the latest. INVARIANT: they are live.
  std::set<LeaseId> unconfirmed{};

  [[nodiscard]] bool is_active() const noexcept { return until != ClusterTime{}; }

  friend bool operator==(const Restoration&, const Restoration&) = default;
};

/// Replicated state of the lock service. A value: the same commands give equal states.
struct State {
  ClusterVersion version = oldest_version;
  Limits limits;
  /// INVARIANT: never decreases, also across snapshots: a token that is assigned twice would let an
  /// expired holder write.
  Revision revision{};
  ClusterTime now{};  ///< Cluster time of the last stamp. INVARIANT: never decreases.
  LeaseTable leases;
  LockTable locks;
  EventRing events;
  Restoration restoration;
};

}  // namespace tenure::core
