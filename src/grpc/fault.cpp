#include "grpc/fault.hpp"

#include <utility>

#include "net/connection_error.hpp"

namespace tenure::grpc {

Status explain(const boost::system::error_code& fault) {
  if (fault == boost::system::errc::protocol_error) {
    return {StatusCode::unavailable, "what it says is not gRPC"};
  }
  auto error = net::connection_error(fault);
  return {
      error.code == Errc::permission_denied ? StatusCode::unauthenticated : StatusCode::unavailable,
      std::move(error.detail)};
}

}  // namespace tenure::grpc
