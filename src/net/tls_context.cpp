#include "net/tls_context.hpp"

#include <string_view>
#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/system/error_code.hpp>
#include <openssl/ssl.h>

namespace tenure::net {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

/// ALPN protocol list: each name is preceded by its length.
using ProtocolList = std::basic_string_view<unsigned char>;
constexpr unsigned char h2_list[] = {2, 'h', '2'};
constexpr unsigned char http1_list[] = {8, 'h', 't', 't', 'p', '/', '1', '.', '1'};
constexpr ProtocolList h2_protocol(h2_list, sizeof h2_list);
constexpr ProtocolList http1_protocol(http1_list, sizeof http1_list);

int choose_protocol(SSL* /*connection*/, const unsigned char** chosen, unsigned char* chosen_size,
                    const unsigned char* offered, unsigned int offered_size, void* list) {
  const auto& wanted = *static_cast<const ProtocolList*>(list);
  auto* out = const_cast<unsigned char*>(*chosen);  // NOLINT: OpenSSL's own signature
  const int found =
      SSL_select_next_proto(&out, chosen_size, wanted.data(),
                            static_cast<unsigned int>(wanted.size()), offered, offered_size);
  *chosen = out;
  return found == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

std::unexpected<Error> unusable(const char* file, const error_code& error) {
  return fail(Errc::invalid_argument,
              std::string(file) + " cannot be used: " + error.message() + "; is it PEM?");
}

/// Certificate chain and its key, as PEM text.
struct OwnCertificate {
  const std::string& certificate;
  const std::string& key;
};
/// Names of the settings that a certificate and its key come from.
struct OwnNames {
  const char* certificate;
  const char* key;
};

Result<void> use_own(asio::ssl::context& context, OwnCertificate own, OwnNames names) {
  error_code error;
  context.use_certificate_chain(asio::buffer(own.certificate), error);
  if (error) {
    return unusable(names.certificate, error);
  }
  context.use_private_key(asio::buffer(own.key), asio::ssl::context::pem, error);
  if (error) {
    return unusable(names.key, error);
  }
  if (SSL_CTX_check_private_key(context.native_handle()) != 1) {
    return fail(Errc::invalid_argument,
                std::string(names.key) + " is not the key of " + names.certificate);
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<asio::ssl::context>> server_context(const ServerTlsFiles& files,
                                                           ServerTlsOptions options) {
  auto context = std::make_unique<asio::ssl::context>(asio::ssl::context::tls_server);
  error_code error;
  context->set_options(asio::ssl::context::default_workarounds | asio::ssl::context::no_tlsv1 |
                           asio::ssl::context::no_tlsv1_1,
                       error);
  if (auto own = use_own(*context, {files.certificate, files.key}, {"tls.cert", "tls.key"}); !own) {
    return std::unexpected(std::move(own).error());
  }
  if (!files.client_ca.empty()) {
    context->add_certificate_authority(asio::buffer(files.client_ca), error);
    if (error) {
      return unusable("tls.client_ca", error);
    }
    context->set_verify_mode(
        asio::ssl::verify_peer |
            (options.requires_certificate ? asio::ssl::verify_fail_if_no_peer_cert : 0),
        error);
    // Without it OpenSSL rejects a client that resumes its session.
    constexpr unsigned char id[] = "tenure";
    SSL_CTX_set_session_id_context(context->native_handle(), id, sizeof id - 1);
  }
  const bool is_h2 = options.protocol == ServerTlsOptions::Protocol::h2;
  // OpenSSL only passes the pointer to choose_protocol(), which does not write to it.
  auto* list = const_cast<ProtocolList*>(is_h2 ? &h2_protocol : &http1_protocol);  // NOLINT
  SSL_CTX_set_alpn_select_cb(context->native_handle(), choose_protocol, list);
  return context;
}

Result<std::unique_ptr<asio::ssl::context>> client_context(const ClientTlsFiles& files) {
  auto context = std::make_unique<asio::ssl::context>(asio::ssl::context::tls_client);
  error_code error;
  context->set_options(asio::ssl::context::default_workarounds | asio::ssl::context::no_tlsv1 |
                           asio::ssl::context::no_tlsv1_1,
                       error);
  context->set_verify_mode(asio::ssl::verify_peer, error);
  if (files.ca.empty()) {
    context->set_default_verify_paths(error);
  } else {
    context->add_certificate_authority(asio::buffer(files.ca), error);
    if (error) {
      return unusable("tls_ca", error);
    }
  }
  if (!files.certificate.empty()) {
    if (auto own = use_own(*context, {files.certificate, files.key}, {"tls_cert", "tls_key"});
        !own) {
      return std::unexpected(std::move(own).error());
    }
  }
  SSL_CTX_set_alpn_protos(context->native_handle(), h2_list, sizeof h2_list);
  return context;
}

}  // namespace tenure::net
