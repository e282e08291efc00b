#pragma once

#include <chrono>
#include <string>

#include <tenure/error.hpp>

#include "backends/rpc/dialer.hpp"
#include "backends/url.hpp"

namespace tenure::backends::cluster {

/// Who we are, if the URL does not say it. The token wins over the file.
struct Login {
  std::string token{};
  std::string token_file{};
};

/// Takes tls_ca, tls_cert and tls_key, names of PEM files, out of the URL; any of them asks for
/// TLS. Likewise the token before the '@', or token_file. `invalid_argument` says what is wrong and
/// where, and never the token; what is left over is an unknown option.
[[nodiscard]] Result<Servers> servers_from(Url& url, std::chrono::milliseconds patience,
                                           const Login& login = {});

/// Would anybody on the way see the token?
[[nodiscard]] bool shows_token(const Servers& servers);

/// All are on this machine.
[[nodiscard]] bool are_near(const Servers& servers);

}  // namespace tenure::backends::cluster
