#pragma once

#include <tenure/error.hpp>

#include "core/ids.hpp"
#include "grpc/status.hpp"
#include "tenure/v1/session.pb.h"

namespace tenure::wire {

/// gRPC status of an error; docs/reference/grpc.md has the table.
[[nodiscard]] grpc::Status status_of(const Error& error);

[[nodiscard]] grpc::Status lease_lost(core::LeaseId lease);

[[nodiscard]] v1::Code code_of(Errc code);

}  // namespace tenure::wire
