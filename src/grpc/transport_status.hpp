#pragma once

#include <boost/system/error_code.hpp>

#include "grpc/status.hpp"

namespace tenure::grpc {

/// Status of a client's calls after their connection has failed. `unauthenticated`: one side
/// rejects the certificate of the other, so a retry does not help.
[[nodiscard]] Status status_from(const boost::system::error_code& code);

}  // namespace tenure::grpc
