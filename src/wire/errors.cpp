#include "wire/errors.hpp"

#include <string>

namespace tenure::wire {
namespace {

grpc::StatusCode status_code_of(Errc code) {
  switch (code) {
    case Errc::would_block: return grpc::StatusCode::FAILED_PRECONDITION;
    case Errc::timed_out: return grpc::StatusCode::DEADLINE_EXCEEDED;
    case Errc::cancelled: return grpc::StatusCode::CANCELLED;
    case Errc::deadlock: return grpc::StatusCode::ABORTED;
    case Errc::not_held: return grpc::StatusCode::FAILED_PRECONDITION;
    case Errc::invalid_argument: return grpc::StatusCode::INVALID_ARGUMENT;
    case Errc::resource_exhausted: return grpc::StatusCode::RESOURCE_EXHAUSTED;
    case Errc::lease_lost: return grpc::StatusCode::NOT_FOUND;
    case Errc::unavailable: return grpc::StatusCode::UNAVAILABLE;
  }
  return grpc::StatusCode::UNKNOWN;
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
  // One numbering for both: new codes are added at the end of each.
  static_assert(static_cast<int>(Errc::unavailable) == v1::CODE_UNAVAILABLE);
  static_assert(v1::Code_MAX == v1::CODE_UNAVAILABLE);
  return static_cast<v1::Code>(code);
}

}  // namespace tenure::wire
