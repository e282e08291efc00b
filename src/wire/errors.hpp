#pragma once

#include <tenure/error.hpp>

#include "core/ids.hpp"
#include "grpc/status.hpp"
#include "tenure/v1/session.pb.h"

namespace tenure::wire {

/// gRPC status of an error; docs/reference/grpc.md has the table.
/// The message contains the name of the error and its detail.
[[nodiscard]] grpc::Status status_of(const Error& error);

/// NOT_FOUND. Also the answer for a lease of another user, which must look like an unknown one.
[[nodiscard]] grpc::Status lease_lost(core::LeaseId lease);

/// Code of a Session outcome, where gRPC has no status per operation.
[[nodiscard]] v1::Code code_of(Errc code);

}  // namespace tenure::wire
