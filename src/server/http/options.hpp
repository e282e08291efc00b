#pragma once

#include "server/config/config.hpp"
#include "server/http/server.hpp"

namespace tenure::server::http {

enum class Users : bool { none, some };

/// What the configuration says of HTTP, except certificates, users and facts. Creates the secret
/// (secret.hpp) where the settings need one.
/// REQUIRES: HTTP is not off; the data directory exists.
[[nodiscard]] Result<ServerOptions> options_from(const Config& config, Users users);

}  // namespace tenure::server::http
