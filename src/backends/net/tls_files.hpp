#pragma once

#include <memory>
#include <optional>

#include <boost/asio/ssl/context.hpp>

#include <tenure/error.hpp>

#include "backends/url_options.hpp"

namespace tenure::backends {

/// Whether a scheme uses TLS always, or only if an option requests it.
enum class Tls : bool { if_asked_for, always };

/// PEM files of the options tls_ca, tls_cert and tls_key; any of them requests TLS.
struct TlsFiles {
  std::optional<UrlOptions::File> ca{};  ///< Trusted authorities; absent: those of the system.
  std::optional<UrlOptions::File> certificate{};  ///< Certificate of the client.
  std::optional<UrlOptions::File> key{};          ///< Private key of that certificate.

  void add_to(UrlOptions& options);
  /// Null: plain text. Errors are `invalid_argument` with the position in the URL.
  [[nodiscard]] Result<std::shared_ptr<boost::asio::ssl::context>> context(Tls wanted) const;
};

}  // namespace tenure::backends
