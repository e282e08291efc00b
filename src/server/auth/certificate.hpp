#pragma once

#include <string>
#include <vector>

#include <openssl/types.h>

namespace tenure::server::auth {

/// The names in the certificate that the other end showed and that was verified: its common name,
/// and its alternative names that are DNS names, addresses of mail or URIs. None if it showed none.
/// Null: there is no TLS.
[[nodiscard]] std::vector<std::string> names_shown(SSL* tls);

}  // namespace tenure::server::auth
