#pragma once

#include "core/ids.hpp"
#include "core/state.hpp"

namespace tenure::core {

/// Makes the state of a backup one that a new cluster can begin with.
///
/// The backup does not know what was granted and released after it. A client that relies on such a
/// grant does so under a lease that the backup lacks, or that it has: the first kind cannot be
/// renewed, the second kind is not renewed until the client has named its holds (ConfirmHolds). So
/// `longest_ttl` later no client relies on a hold that the state does not have, and granting
/// begins. Restored waits are dropped, because they may have been granted since: a client that
/// still waits asks again. Each restored lease gets its whole ttl, so that its client has time to
/// confirm it. ENSURES: the state is of version_2 or newer. REQUIRES: longest_ttl > 0, and no
/// client has a lease with a longer ttl.
void begin_restoration(State& state, ClusterTime longest_ttl);

/// Ends all leases with their holds and waits, without events: for a state that is too large.
/// Revisions, limits and lease ids go on. Clients learn of it by their next renewal;
/// begin_restoration() keeps locks from others until then.
void drop_leases(State& state);

/// The longest ttl of the leases of this state; 0 if there are none.
[[nodiscard]] ClusterTime longest_ttl(const State& state);

}  // namespace tenure::core
