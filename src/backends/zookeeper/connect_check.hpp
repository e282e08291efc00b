#pragma once

#include <chrono>

#include <tenure/error.hpp>

#include "backends/zookeeper/url.hpp"

namespace tenure::backends::zookeeper {

/// Is anybody there? The C client tries for ever and does not say why it fails; people want to know
/// at once. Success as soon as one server accepts a connection.
[[nodiscard]] Result<void> check_connectivity(const Address& address,
                                              std::chrono::milliseconds timeout);

}  // namespace tenure::backends::zookeeper
