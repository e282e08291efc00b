#pragma once

#include <memory>

#include <boost/asio/ssl/context.hpp>

#include <tenure/error.hpp>

#include "backends/url.hpp"

namespace tenure::backends {

/// Whether a scheme speaks TLS though no option asks for it.
enum class Tls : bool { if_asked_for, always };

/// Takes tls_ca, tls_cert and tls_key, names of PEM files, out of the URL; any of them asks for
/// TLS. Null: plain text. `invalid_argument` says what is wrong and where.
[[nodiscard]] Result<std::shared_ptr<boost::asio::ssl::context>> take_tls(Url& url, Tls wanted);

}  // namespace tenure::backends
