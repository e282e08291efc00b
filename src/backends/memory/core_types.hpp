#pragma once

#include <string>

#include <tenure/client/watch.hpp>
#include <tenure/error.hpp>

#include "backends/backend.hpp"
#include "core/command.hpp"
#include "core/outcome.hpp"

namespace tenure::backends {

/// Copies the specification, which the state machine owns from then on. The fields that matter only
/// to other services (fairness, kind, min_replicas) have no counterpart: the client has checked the
/// capabilities before.
[[nodiscard]] core::Acquire to_core(const AcquireRequest& request);
/// Converts an event. It has no user and no operator, because there is no authentication here.
[[nodiscard]] LockEvent from_core(const core::Event& event);
/// Converts a rejection; the detail of a deadlock describes the cycle.
[[nodiscard]] Error from_core(const core::Refused& refused);
/// Error for a request under a lease that is unknown to the store.
[[nodiscard]] Error lease_is_lost(LeaseId lease);

}  // namespace tenure::backends
