#pragma once

#include <string>

#include <tenure/error.hpp>

namespace tenure::backends::zookeeper {

/// Whether the connection was lost, so the outcome is unknown and the request must be retried.
[[nodiscard]] bool is_connection_lost(int code);
/// Whether the session has ended or is being closed: no more replies follow.
[[nodiscard]] bool is_session_over(int code);

/// Maps an error code of the C client. `what`: location of the error, such as a path.
[[nodiscard]] Error error_from(int code, const std::string& what);

}  // namespace tenure::backends::zookeeper
