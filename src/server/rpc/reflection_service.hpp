#pragma once

#include "server/rpc/routes.hpp"

namespace tenure::server {

/// Adds gRPC server reflection: services and message descriptors, from the descriptors compiled
/// into the binary.
/// Needs no authentication: the descriptors are public in proto/.
void add_reflection(Routes& routes);

}  // namespace tenure::server
