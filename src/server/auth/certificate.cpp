#include "server/auth/certificate.hpp"

#include <memory>
#include <string_view>

#include <openssl/ssl.h>
#include <openssl/x509v3.h>

namespace tenure::server::auth {
namespace {

/// Skips names with an embedded NUL: programs that stop reading there would see another name.
void add(const ASN1_STRING* text, std::vector<std::string>& names) {
  if (text == nullptr) {
    return;
  }
  const std::string_view name(reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
                              static_cast<std::size_t>(ASN1_STRING_length(text)));
  if (!name.empty() && name.find('\0') == std::string_view::npos) {
    names.emplace_back(name);
  }
}

}  // namespace

std::vector<std::string> certificate_names(SSL* tls) {
  std::vector<std::string> names;
  auto* certificate = tls == nullptr ? nullptr : SSL_get0_peer_certificate(tls);
  // OpenSSL reports X509_V_OK without a certificate too, so both conditions are needed.
  if (certificate == nullptr || SSL_get_verify_result(tls) != X509_V_OK) {
    return names;
  }
  auto* subject = X509_get_subject_name(certificate);
  const int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
  if (at >= 0) {
    add(X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)), names);
  }
  struct Free {
    void operator()(GENERAL_NAMES* list) const { GENERAL_NAMES_free(list); }
  };
  const std::unique_ptr<GENERAL_NAMES, Free> alternatives(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; alternatives && i < sk_GENERAL_NAME_num(alternatives.get()); ++i) {
    const auto* name = sk_GENERAL_NAME_value(alternatives.get(), i);
    switch (name->type) {
      case GEN_DNS: add(name->d.dNSName, names); break;
      case GEN_EMAIL: add(name->d.rfc822Name, names); break;
      case GEN_URI: add(name->d.uniformResourceIdentifier, names); break;
      default: break;
    }
  }
  return names;
}

}  // namespace tenure::server::auth
