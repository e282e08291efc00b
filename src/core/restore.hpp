#pragma once

#include "core/ids.hpp"
#include "core/state.hpp"

namespace tenure::core {

/// Prepares the state of a backup as the initial state of a new cluster.
///
/// The backup lacks the grants and releases after it. A client that relies on such a grant does so
/// under a lease that the backup lacks or contains. The first kind cannot be renewed; the second
/// kind is not renewed until the client has sent its holds (ConfirmHolds). So after `longest_ttl`
/// no client relies on a hold that the state lacks, and granting begins.
///
/// Restored waits are dropped, because they may have been granted since; a client that still waits
/// repeats its request. Each restored lease gets its whole ttl, so that its client has time to
/// confirm it.
///
/// REQUIRES: longest_ttl > 0, and no client has a lease with a longer ttl. ENSURES: the state is of
/// version_2 or newer.
void begin_restoration(State& state, ClusterTime longest_ttl);

/// Ends all leases with their holds and waits, without events: for a state that is too large.
/// Revisions, limits and lease ids continue. Clients learn of the loss at their next renewal;
/// begin_restoration() delays grants until then.
void drop_leases(State& state);

/// Longest ttl of all leases; 0 if there is no lease.
[[nodiscard]] ClusterTime longest_ttl(const State& state);

}  // namespace tenure::core
