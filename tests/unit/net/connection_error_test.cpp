#include "net/connection_error.hpp"

#include <string>

#include <boost/asio/error.hpp>
#include <boost/asio/ssl/error.hpp>
#include <boost/system/error_code.hpp>
#include <gtest/gtest.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>

#include <tenure/error.hpp>

#include "grpc/transport_status.hpp"

namespace tenure::net {
namespace {

using boost::system::error_code;

error_code tls_error(int reason) {
  return {static_cast<int>(ERR_PACK(ERR_LIB_SSL, 0, reason)),
          boost::asio::error::get_ssl_category()};
}

TEST(NetConnectionError, a_lost_connection_may_be_retried) {
  const auto error = connection_error(boost::asio::error::connection_reset);
  EXPECT_EQ(error.code, Errc::unavailable);
  EXPECT_TRUE(error.detail.starts_with("the connection is lost: ")) << error.detail;
  EXPECT_EQ(connection_error({}).code, Errc::unavailable);
}

TEST(NetConnectionError, a_certificate_for_another_host_is_an_error_that_no_retry_cures) {
  const auto error = connection_error({X509_V_ERR_HOSTNAME_MISMATCH, certificate_category()});
  EXPECT_EQ(error.code, Errc::permission_denied);
  EXPECT_TRUE(error.detail.ends_with("connect by a name that the certificate contains"))
      << error.detail;
}

TEST(NetConnectionError, a_server_that_requires_a_certificate_is_an_error_that_no_retry_cures) {
  const auto error = connection_error(tls_error(SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED));
  EXPECT_EQ(error.code, Errc::permission_denied);
  EXPECT_NE(error.detail.find("tls_cert and tls_key"), std::string::npos) << error.detail;
}

TEST(NetConnectionError, a_server_without_tls_is_reported_as_such) {
  const auto error = connection_error(tls_error(SSL_R_WRONG_VERSION_NUMBER));
  EXPECT_EQ(error.code, Errc::unavailable);
  EXPECT_NE(error.detail.find("the server may not use TLS"), std::string::npos) << error.detail;
}

TEST(H2Fault, a_rejected_certificate_ends_calls_as_unauthenticated) {
  const auto status = grpc::status_from({X509_V_ERR_CERT_HAS_EXPIRED, certificate_category()});
  EXPECT_EQ(status.code, grpc::StatusCode::unauthenticated);
}

TEST(H2Fault, bytes_that_are_not_http2_end_calls_as_unavailable) {
  const auto status = grpc::status_from(make_error_code(boost::system::errc::protocol_error));
  EXPECT_EQ(status.code, grpc::StatusCode::unavailable);
  EXPECT_EQ(status.message, "the server does not speak gRPC");
}

}  // namespace
}  // namespace tenure::net
