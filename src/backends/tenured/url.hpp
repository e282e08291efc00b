#pragma once

#include <chrono>
#include <string>

#include <tenure/error.hpp>

#include "backends/rpc/channel_connector.hpp"
#include "backends/url.hpp"

namespace tenure::backends::tenured {

/// Who we are, if the URL does not say it. The token wins over the file.
struct Login {
  std::string token{};
  std::string token_file{};
};

/// Parses a tenure:// URL: servers, token before the '@', and the options token_file, tls_ca,
/// tls_cert and tls_key, which it takes out of the URL. `invalid_argument` says what is wrong and
/// where, and never the token.
[[nodiscard]] Result<Servers> servers_from(Url& url, std::chrono::milliseconds timeout,
                                           const Login& login = {});

/// Would anybody on the way see the token?
[[nodiscard]] bool exposes_token(const Servers& servers);

/// All are on this machine.
[[nodiscard]] bool are_local(const Servers& servers);

}  // namespace tenure::backends::tenured
