#pragma once

#include "server/rpc/routes.hpp"

namespace tenure::server {

/// gRPC's reflection protocol: tells tools which services there are and what their messages look
/// like, from the descriptors that protobuf has compiled in.
void add_reflection(Routes& routes);

}  // namespace tenure::server
