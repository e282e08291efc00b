#include "grpc/transport_status.hpp"

#include <utility>

#include "net/connection_error.hpp"

namespace tenure::grpc {

Status status_from(const boost::system::error_code& code) {
  // nghttp2 rejected the bytes: another service listens at this address.
  if (code == boost::system::errc::protocol_error) {
    return {StatusCode::unavailable, "the server does not speak gRPC"};
  }
  auto error = net::connection_error(code);
  return {
      error.code == Errc::permission_denied ? StatusCode::unauthenticated : StatusCode::unavailable,
      std::move(error.detail)};
}

}  // namespace tenure::grpc
