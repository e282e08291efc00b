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
    case X509_V_ERR_IP_ADDRESS_MISMATCH: return "connect by a name that stands in it";
    case X509_V_ERR_CERT_HAS_EXPIRED:
    case X509_V_ERR_CERT_NOT_YET_VALID: return "the server needs a new one, or a clock is wrong";
    default: return "is tls_ca the authority that signed it?";
  }
}

/// Whether a TLS alert means that the peer rejects our certificate or requires one.
bool rejects_our_certificate(int reason) {
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
            .detail = "the certificate of the server is refused: " + text + "; " +
                      advice_for(error.value())};
  }
  if (error.category() != boost::asio::error::get_ssl_category()) {
    return {.code = Errc::unavailable, .detail = "the connection is lost: " + text};
  }
  if (rejects_our_certificate(ERR_GET_REASON(static_cast<unsigned long>(error.value())))) {
    return {.code = Errc::permission_denied,
            .detail = "the server refused us for our certificate: " + text +
                      "; tls_cert and tls_key are to name one that its authority signed"};
  }
  return {.code = Errc::unavailable,
          .detail = "TLS failed: " + text +
                    "; does the server speak TLS? Without tls_… options we do not"};
}

}  // namespace tenure::net
