#pragma once

#include "core/event_ring.hpp"
#include "core/ids.hpp"
#include "core/lease_table.hpp"
#include "core/limits.hpp"
#include "core/lock_table.hpp"

namespace tenure::core {

/// Everything the store knows. A value: two that took the same commands are the same.
struct State {
  Limits limits;
  /// INVARIANT: never decreases, also across snapshots: a token that came twice would let a dead
  /// holder write.
  Revision revision{};
  ClusterTime now{};  ///< Of the last stamp. Never decreases either.
  LeaseTable leases;
  LockTable locks;
  EventRing events;
};

}  // namespace tenure::core
