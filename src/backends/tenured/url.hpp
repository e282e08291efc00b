#pragma once

#include <chrono>
#include <string>

#include <tenure/error.hpp>

#include "backends/rpc/channel_connector.hpp"
#include "backends/url.hpp"

namespace tenure::backends::tenured {

/// Credentials of the program, used if the URL has none. The token takes precedence over the file.
struct Login {
  std::string token{};
  std::string token_file{};
};

/// Parses a tenure:// URL: servers, token before '@', and the options token_file, tls_ca, tls_cert
/// and tls_key, which are removed from the URL. Errors (`invalid_argument`) name the position and
/// never contain the token.
[[nodiscard]] Result<Servers> servers_from(Url& url, std::chrono::milliseconds timeout,
                                           const Login& login = {});

/// Whether the token would cross the network unencrypted.
[[nodiscard]] bool exposes_token(const Servers& servers);

/// Whether all servers run on this machine.
[[nodiscard]] bool are_local(const Servers& servers);

}  // namespace tenure::backends::tenured
