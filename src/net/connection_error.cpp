#include "net/connection_error.hpp"

#include <algorithm>
#include <array>
#include <string>

#include <boost/asio/ssl/error.hpp>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>

namespace tenure::net {
namespace {

using boost::system::error_code;

class CertificateCategory final : public boost::system::error_category {
 public:
  [[nodiscard]] const char* name() const noexcept override { return "tenure.certificate"; }
  [[nodiscard]] std::string message(int value) const override {
    return X509_verify_cert_error_string(value);
  }
};

const char* advice_for(int verdict) {
  switch (verdict) {
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH: return "connect by a name that the certificate contains";
    case X509_V_ERR_CERT_HAS_EXPIRED:
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return "renew the certificate of the server, and check the clocks";
    default: return "check that tls_ca is the authority that signed it";
  }
}

/// Whether a TLS alert means that the peer rejects the certificate of this client, or requires one.
bool rejects_client_certificate(int reason) {
  constexpr std::array reasons{
      SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED, SSL_R_SSLV3_ALERT_NO_CERTIFICATE,
      SSL_R_SSLV3_ALERT_BAD_CERTIFICATE,       SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE,
      SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED,   SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED,
      SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN,   SSL_R_TLSV1_ALERT_UNKNOWN_CA,
      SSL_R_TLSV1_ALERT_ACCESS_DENIED,         SSL_R_TLSV1_ALERT_DECRYPT_ERROR,
      SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE};
  return std::ranges::find(reasons, reason) != reasons.end();
}

}  // namespace

const boost::system::error_category& certificate_category() noexcept {
  static const CertificateCategory category;
  return category;
}

Error connection_error(const error_code& error) {
  if (!error) {
    return {.code = Errc::unavailable, .detail = "the connection is lost"};
  }
  const auto text = error.message();
  if (error.category() == certificate_category()) {
    return {.code = Errc::permission_denied,
            .detail = "the certificate of the server is rejected: " + text + "; " +
                      advice_for(error.value())};
  }
  if (error.category() != boost::asio::error::get_ssl_category()) {
    return {.code = Errc::unavailable, .detail = "the connection is lost: " + text};
  }
  if (rejects_client_certificate(ERR_GET_REASON(static_cast<unsigned long>(error.value())))) {
    return {.code = Errc::permission_denied,
            .detail = "the server rejects the certificate of this client: " + text +
                      "; set tls_cert and tls_key to a certificate that its authority signed"};
  }
  return {.code = Errc::unavailable,
          .detail = "TLS failed: " + text +
                    "; the server may not use TLS: then remove the tls_… options"};
}

}  // namespace tenure::net
