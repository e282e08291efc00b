#pragma once

#include <chrono>

#include <tenure/error.hpp>

#include "backends/zookeeper/url.hpp"

namespace tenure::backends::zookeeper {

/// Connectivity check before the session is opened: the C client retries for ever without reporting
/// a reason, but connect() must fail fast. Succeeds as soon as one server accepts a TCP connection.
[[nodiscard]] Result<void> check_connectivity(const Address& address,
                                              std::chrono::milliseconds timeout);

}  // namespace tenure::backends::zookeeper
