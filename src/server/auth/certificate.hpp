#pragma once

#include <string>
#include <vector>

#include <openssl/types.h>

namespace tenure::server::auth {

/// Names in the verified client certificate of a TLS connection: the common name, and the DNS,
/// e-mail and URI alternative names. Empty without a certificate; `tls` may be null (plain text).
/// REQUIRES: the handshake is complete.
[[nodiscard]] std::vector<std::string> certificate_names(SSL* tls);

}  // namespace tenure::server::auth
