#pragma once

#include <string>

#include <tenure/error.hpp>

namespace tenure::backends::zookeeper {

/// Nobody knows whether it was done: the connection broke. It is asked again on the next one.
[[nodiscard]] bool is_connection_lost(int code);
/// The session has ended, or is being ended by us: there is nothing more to hear.
[[nodiscard]] bool is_session_over(int code);

/// In our own words. `what`: where, such as a path.
[[nodiscard]] Error error_from(int code, const std::string& what);

}  // namespace tenure::backends::zookeeper
