#pragma once

#include <tenure/error.hpp>

namespace tenure::server {

/// Error of a call or wait that ends because this member is no longer the leader. A retry with the
/// same request id at the new leader finds the outcome, or the place in the queue.
[[nodiscard]] Error leadership_lost();

}  // namespace tenure::server
