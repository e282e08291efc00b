#include "wire/errors.hpp"

#include <string>

namespace tenure::wire {
namespace {

/// Several errors share a gRPC code: gRPC has no code for locks. A switch without default makes the
/// compiler report a new error without a status.
grpc::StatusCode status_code_of(Errc code) {
  switch (code) {
    case Errc::would_block: return grpc::StatusCode::failed_precondition;
    case Errc::timed_out: return grpc::StatusCode::deadline_exceeded;
    case Errc::cancelled: return grpc::StatusCode::cancelled;
    case Errc::deadlock: return grpc::StatusCode::aborted;
    case Errc::not_held: return grpc::StatusCode::failed_precondition;
    case Errc::invalid_argument: return grpc::StatusCode::invalid_argument;
    case Errc::resource_exhausted: return grpc::StatusCode::resource_exhausted;
    case Errc::lease_lost: return grpc::StatusCode::not_found;
    case Errc::unavailable: return grpc::StatusCode::unavailable;
    case Errc::permission_denied: return grpc::StatusCode::permission_denied;
    case Errc::unsupported: return grpc::StatusCode::unimplemented;
  }
  return grpc::StatusCode::unknown;
}

}  // namespace

grpc::Status status_of(const Error& error) {
  return {status_code_of(error.code), to_string(error)};
}

grpc::Status lease_lost(core::LeaseId lease) {
  return status_of({.code = Errc::lease_lost,
                    .detail = "lease " + std::to_string(lease.get()) +
                              " is not known: it was never granted, has expired or was revoked"});
}

v1::Code code_of(Errc code) {
  // Both enums have the same numbers; new codes are appended to both.
  static_assert(static_cast<int>(Errc::unsupported) == v1::CODE_UNSUPPORTED);
  static_assert(v1::Code_MAX == v1::CODE_UNSUPPORTED);
  return static_cast<v1::Code>(code);
}

}  // namespace tenure::wire
