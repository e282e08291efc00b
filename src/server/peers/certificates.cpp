#include "server/peers/certificates.hpp"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/asio/buffer.hpp>
#include <boost/system/error_code.hpp>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

namespace tenure::server::peers {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr std::string_view member_prefix = "tenure:member/";

std::string_view text_of(const ASN1_STRING& text) {
  return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(&text)),
          static_cast<std::size_t>(ASN1_STRING_length(&text))};
}

/// Subject alternative names of the form `tenure:member/...`.
std::vector<std::string> members_named_in(X509& certificate) {
  struct Free {
    void operator()(GENERAL_NAMES* names) const { GENERAL_NAMES_free(names); }
  };
  const std::unique_ptr<GENERAL_NAMES, Free> names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(&certificate, NID_subject_alt_name, nullptr, nullptr)));
  std::vector<std::string> found;
  for (int i = 0; names && i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const auto* name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type == GEN_URI &&
        text_of(*name->d.uniformResourceIdentifier).starts_with(member_prefix)) {
      found.emplace_back(text_of(*name->d.uniformResourceIdentifier));
    }
  }
  return found;
}

struct FreeCertificate {
  void operator()(X509* certificate) const { X509_free(certificate); }
};
using OwnedCertificate = std::unique_ptr<X509, FreeCertificate>;

std::vector<OwnedCertificate> certificates_in(const std::string& pem) {
  struct Free {
    void operator()(BIO* bytes) const { BIO_free(bytes); }
  };
  const std::unique_ptr<BIO, Free> bytes(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  std::vector<OwnedCertificate> all;
  // Reads certificates until the first text that is none.
  while (auto* one = PEM_read_bio_X509(bytes.get(), nullptr, nullptr, nullptr)) {
    all.emplace_back(one);
  }
  // PEM_read_bio_X509() leaves an error at the end of the input.
  ERR_clear_error();
  return all;
}

std::unexpected<Error> unusable(const char* setting, const std::string& why) {
  return fail(Errc::invalid_argument, std::string(setting) + ": " + why);
}

Result<std::unique_ptr<asio::ssl::context>> make_context(asio::ssl::context::method method,
                                                         const PeerTls& files) {
  auto context = std::make_unique<asio::ssl::context>(method);
  error_code error;
  context->use_certificate_chain(asio::buffer(files.certificate), error);
  if (error) {
    return unusable("peer_tls.cert", error.message() + "; expected PEM");
  }
  context->use_private_key(asio::buffer(files.key), asio::ssl::context::pem, error);
  if (error || SSL_CTX_check_private_key(context->native_handle()) != 1) {
    return unusable("peer_tls.key", "not the key of peer_tls.cert");
  }
  context->add_certificate_authority(asio::buffer(files.ca), error);
  if (error) {
    return unusable("peer_tls.ca", error.message() + "; expected PEM");
  }
  // Both roles require a certificate of the peer: an acceptor without the second flag would accept
  // an initiator that presents none.
  context->set_verify_mode(asio::ssl::verify_peer | asio::ssl::verify_fail_if_no_peer_cert, error);
  // Both ends are tenured, so older versions are not needed.
  SSL_CTX_set_min_proto_version(context->native_handle(), TLS1_3_VERSION);
  // A resumed session would skip the certificate check.
  SSL_CTX_set_session_cache_mode(context->native_handle(), SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(context->native_handle(), 0);
  return context;
}

/// Verifies the own certificate as the peers will, so that a wrong one is reported at startup. It
/// must be valid for both roles, because members are TLS clients and TLS servers of each other.
std::string verify_own_certificate(SSL_CTX& context) {
  struct Free {
    void operator()(X509_STORE_CTX* check) const { X509_STORE_CTX_free(check); }
  };
  STACK_OF(X509)* chain = nullptr;
  SSL_CTX_get0_chain_certs(&context, &chain);
  // The two purposes that extended key usage distinguishes.
  for (const char* purpose : {"ssl_client", "ssl_server"}) {
    const std::unique_ptr<X509_STORE_CTX, Free> check(X509_STORE_CTX_new());
    X509_STORE_CTX_init(check.get(), SSL_CTX_get_cert_store(&context),
                        SSL_CTX_get0_certificate(&context), chain);
    X509_STORE_CTX_set_default(check.get(), purpose);
    if (X509_verify_cert(check.get()) != 1) {
      return X509_verify_cert_error_string(X509_STORE_CTX_get_error(check.get()));
    }
  }
  return {};
}

}  // namespace

Result<TlsContexts> make_contexts(const PeerTls& files, raft::MemberId self) {
  auto acceptor = make_context(asio::ssl::context::tls_server, files);
  if (!acceptor) {
    return std::unexpected(std::move(acceptor).error());
  }
  auto initiator = make_context(asio::ssl::context::tls_client, files);
  if (!initiator) {
    return std::unexpected(std::move(initiator).error());
  }
  auto& native = *(*acceptor)->native_handle();
  if (const auto verdict = verify_own_certificate(native); !verdict.empty()) {
    return unusable("peer_tls.cert", "not valid for peer_tls.ca (" + verdict +
                                         "). It may be a certificate of another cluster");
  }
  if (const auto error = certificate_error(*SSL_CTX_get0_certificate(&native), self);
      !error.empty()) {
    return unusable("peer_tls.cert", error);
  }
  return TlsContexts{.acceptor = *std::move(acceptor), .initiator = *std::move(initiator)};
}

std::string certificate_error(X509& certificate, raft::MemberId member) {
  const auto named = members_named_in(certificate);
  const auto wanted = std::string(member_prefix) + std::to_string(member.get());
  if (named.empty()) {
    return "the certificate names no member: it needs URI:" + wanted +
           " among its subject alternative names";
  }
  if (std::ranges::find(named, wanted) != named.end()) {
    return {};
  }
  std::string all;
  for (const auto& name : named) {
    all += (all.empty() ? "" : ", ") + name;
  }
  return "the certificate is for " + all + ", and not for member " + std::to_string(member.get());
}

std::string peer_certificate_error(SSL& tls, raft::MemberId member) {
  auto* certificate = SSL_get0_peer_certificate(&tls);
  return certificate == nullptr ? "the peer presented no certificate"
                                : certificate_error(*certificate, member);
}

// Compares the certificates and not the PEM texts, whose format may differ.
bool have_common_certificate(const std::string& one, const std::string& other) {
  const auto others = certificates_in(other);
  return std::ranges::any_of(certificates_in(one), [&](const OwnedCertificate& certificate) {
    return std::ranges::any_of(others, [&](const OwnedCertificate& candidate) {
      return X509_cmp(certificate.get(), candidate.get()) == 0;
    });
  });
}

}  // namespace tenure::server::peers
