#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <boost/asio/ssl/context.hpp>

#include <tenure/error.hpp>

namespace tenure::net {

/// Certificates of a server, as PEM text.
struct ServerTlsFiles {
  std::string certificate{};  ///< Certificate of the server, with its chain.
  std::string key{};          ///< Private key of the certificate.
  std::string client_ca{};    ///< Authority that signs client certificates; empty: mTLS is off.
};

/// How a server port negotiates TLS.
struct ServerTlsOptions {
  enum class Protocol : std::uint8_t { h2, http1 };
  Protocol protocol = Protocol::h2;  ///< Protocol that ALPN negotiates.
  /// With a client_ca: false accepts clients without a certificate, but none with a wrong one.
  bool requires_certificate = true;
};

/// Builds the TLS context of a server. The detail of `invalid_argument` names the invalid file.
[[nodiscard]] Result<std::unique_ptr<boost::asio::ssl::context>> server_context(
    const ServerTlsFiles& files, ServerTlsOptions options = {});

/// Certificates of a client, as PEM text.
struct ClientTlsFiles {
  std::string ca{};  ///< Authority that signs servers; empty: the trust store of the system.
  std::string certificate{};  ///< Certificate of the client, or empty.
  std::string key{};          ///< Private key of the certificate.
};

/// Builds the TLS context of a client. The detail of `invalid_argument` names the invalid file.
[[nodiscard]] Result<std::unique_ptr<boost::asio::ssl::context>> client_context(
    const ClientTlsFiles& files);

}  // namespace tenure::net
