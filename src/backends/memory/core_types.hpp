#pragma once

#include <string>

#include <tenure/client/watch.hpp>
#include <tenure/error.hpp>

#include "backends/backend.hpp"
#include "core/command.hpp"
#include "core/outcome.hpp"

namespace tenure::backends {

[[nodiscard]] core::Acquire to_core(const AcquireRequest& request);
[[nodiscard]] LockEvent from_core(const core::Event& event);
/// Converts a rejection; the detail of a deadlock describes the cycle.
[[nodiscard]] Error from_core(const core::Refused& refused);
[[nodiscard]] Error lease_is_lost(LeaseId lease);

}  // namespace tenure::backends
