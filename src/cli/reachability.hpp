#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "cli/service.hpp"
#include "tenure/v1/admin.pb.h"

namespace tenure::cli {

/// Status that one server reports about itself; none without a reply in time.
[[nodiscard]] std::optional<v1::StatusResponse> fetch_status(const backends::Endpoint& server,
                                                             backends::Servers servers,
                                                             std::chrono::milliseconds timeout);

/// Cause of an `unavailable` error of a tenured: which members answer, whether there is a leader,
/// or that the port is that of HTTP. Asks each server, for up to half a second. Other errors, and
/// those without a better explanation, are returned unchanged.
[[nodiscard]] Error explained(Error error, const backends::Servers& servers);

}  // namespace tenure::cli
