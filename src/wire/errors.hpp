#pragma once

#include <tenure/error.hpp>

#include "core/ids.hpp"
#include "h2/status.hpp"
#include "tenure/v1/session.pb.h"

namespace tenure::wire {

/// How gRPC says it. `docs/wire.md` has the table.
[[nodiscard]] h2::Status status_of(const Error& error);

[[nodiscard]] h2::Status lease_lost(core::LeaseId lease);

[[nodiscard]] v1::Code code_of(Errc code);

}  // namespace tenure::wire
