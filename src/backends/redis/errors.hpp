#pragma once

#include <string>
#include <string_view>

#include <tenure/error.hpp>

namespace tenure::backends::redis {

/// Converts an error reply into an Error with a remedy. `where`: the server's endpoint.
[[nodiscard]] Error error_from(std::string_view words, const std::string& where);

/// The server cannot execute commands at the moment: it loads its data, is busy, or is no primary.
/// The command is to be retried after a delay, on another connection.
[[nodiscard]] bool is_transient(std::string_view words);

/// The cluster node did not execute the command and names another node (MOVED, ASK), or asks for a
/// later retry (TRYAGAIN, CLUSTERDOWN).
[[nodiscard]] bool is_redirect(std::string_view words);

}  // namespace tenure::backends::redis
