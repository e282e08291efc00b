#pragma once

#include <memory>

#include <boost/asio/ssl/context.hpp>

#include <tenure/error.hpp>

#include "backends/url_options.hpp"

namespace tenure::backends {

/// Whether a scheme uses TLS always, or only if an option requests it.
enum class Tls : bool { if_asked_for, always };

/// Consumes `options`, and the options tls_ca, tls_cert and tls_key, which name PEM files; any of
/// them requests TLS. Returns the TLS context; null: plain text. Errors are `invalid_argument` with
/// the position in the URL.
[[nodiscard]] Result<std::shared_ptr<boost::asio::ssl::context>> consume_with_tls(
    Url& url, UrlOptions options, Tls wanted);

}  // namespace tenure::backends
