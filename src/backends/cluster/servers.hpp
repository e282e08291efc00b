#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include <boost/asio/ssl/context.hpp>

#include <tenure/error.hpp>

#include "backends/url.hpp"

namespace tenure::backends::cluster {

/// Where the servers are, and how they are spoken to.
struct Servers {
  std::vector<Endpoint> endpoints{};                 ///< At least one.
  std::shared_ptr<boost::asio::ssl::context> tls{};  ///< Null: plain text.
  std::chrono::milliseconds connect_timeout{5000};   ///< For each.
};

/// Takes tls_ca, tls_cert and tls_key, names of PEM files, out of the URL; any of them asks for
/// TLS. `invalid_argument` says what is wrong and where; what is left over is an unknown option.
[[nodiscard]] Result<Servers> servers_from(Url& url, std::chrono::milliseconds patience);

}  // namespace tenure::backends::cluster
