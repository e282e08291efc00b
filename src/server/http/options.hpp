#pragma once

#include "server/config/config.hpp"
#include "server/http/server.hpp"

namespace tenure::server::http {

/// Whether the server authenticates users (--auth-file).
enum class Users : bool { none, some };

/// HTTP options from the configuration, without certificates, users and facts. Creates the secret
/// (secret.hpp) if the settings need one. REQUIRES: HTTP is enabled; the data directory exists.
[[nodiscard]] Result<ServerOptions> options_from(const Config& config, Users users);

}  // namespace tenure::server::http
