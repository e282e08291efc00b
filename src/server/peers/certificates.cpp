#include "server/peers/certificates.hpp"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/system/error_code.hpp>
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

/// The URIs that begin with our word.
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

/// The certificate that the other end showed.
X509* shown(SSL& tls) {
  return SSL_get0_peer_certificate(&tls);
}

bool names_host(X509& certificate, const std::string& host) {
  error_code is_no_address;
  asio::ip::make_address(host, is_no_address);
  return is_no_address ? X509_check_host(&certificate, host.data(), host.size(), 0, nullptr) == 1
                       : X509_check_ip_asc(&certificate, host.c_str(), 0) == 1;
}

std::unexpected<Error> unusable(const char* setting, const std::string& why) {
  return fail(Errc::invalid_argument, std::string(setting) + " cannot be used: " + why);
}

Result<std::unique_ptr<asio::ssl::context>> make_context(asio::ssl::context::method method,
                                                         const PeerTls& files) {
  auto context = std::make_unique<asio::ssl::context>(method);
  error_code error;
  context->use_certificate_chain(asio::buffer(files.certificate), error);
  if (error) {
    return unusable("peer_tls.cert", error.message() + "; is it PEM?");
  }
  context->use_private_key(asio::buffer(files.key), asio::ssl::context::pem, error);
  if (error || SSL_CTX_check_private_key(context->native_handle()) != 1) {
    return unusable("peer_tls.key", "it is not the key of peer_tls.cert");
  }
  context->add_certificate_authority(asio::buffer(files.ca), error);
  if (error) {
    return unusable("peer_tls.ca", error.message() + "; is it PEM?");
  }
  context->set_verify_mode(asio::ssl::verify_peer | asio::ssl::verify_fail_if_no_peer_cert, error);
  // Both ends are ours: nothing older is needed.
  SSL_CTX_set_min_proto_version(context->native_handle(), TLS1_3_VERSION);
  // A session that was resumed would not show its certificate again.
  SSL_CTX_set_session_cache_mode(context->native_handle(), SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(context->native_handle(), 0);
  return context;
}

/// What the other members will say about our own certificate, before they do. It is shown by the
/// one who calls and by the one who is called, and may say that it is good for one of the two only.
std::string verdict_of_others(SSL_CTX& context) {
  struct Free {
    void operator()(X509_STORE_CTX* check) const { X509_STORE_CTX_free(check); }
  };
  STACK_OF(X509)* chain = nullptr;
  SSL_CTX_get0_chain_certs(&context, &chain);
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
  auto called = make_context(asio::ssl::context::tls_server, files);
  if (!called) {
    return std::unexpected(std::move(called).error());
  }
  auto caller = make_context(asio::ssl::context::tls_client, files);
  if (!caller) {
    return std::unexpected(std::move(caller).error());
  }
  auto& native = *(*called)->native_handle();
  if (const auto verdict = verdict_of_others(native); !verdict.empty()) {
    return unusable("peer_tls.cert", "by peer_tls.ca it is not valid (" + verdict +
                                         "), so the other members would refuse it. Is it a "
                                         "certificate of another cluster?");
  }
  if (const auto complaint = complaint_about(*SSL_CTX_get0_certificate(&native), self);
      !complaint.empty()) {
    return unusable("peer_tls.cert", complaint);
  }
  return TlsContexts{.called = *std::move(called), .caller = *std::move(caller)};
}

std::string complaint_about(X509& certificate, raft::MemberId member) {
  const auto named = members_named_in(certificate);
  const auto wanted = std::string(member_prefix) + std::to_string(member.get());
  if (named.empty() || std::ranges::find(named, wanted) != named.end()) {
    return {};
  }
  std::string all;
  for (const auto& name : named) {
    all += (all.empty() ? "" : ", ") + name;
  }
  return "the certificate is for " + all + ", and not for member " + std::to_string(member.get());
}

std::string complaint_about_called(SSL& tls, raft::MemberId member, const std::string& host) {
  auto* certificate = shown(tls);
  if (certificate == nullptr) {
    return "no certificate was shown";
  }
  if (members_named_in(*certificate).empty() && !names_host(*certificate, host)) {
    return "the certificate names neither " + std::string(member_prefix) +
           std::to_string(member.get()) + " nor the host " + host;
  }
  return complaint_about(*certificate, member);
}

std::string complaint_about_caller(SSL& tls, raft::MemberId member) {
  auto* certificate = shown(tls);
  return certificate == nullptr ? "no certificate was shown"
                                : complaint_about(*certificate, member);
}

}  // namespace tenure::server::peers
