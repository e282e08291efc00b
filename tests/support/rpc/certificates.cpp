#include "support/rpc/certificates.hpp"

#include <stdexcept>
#include <utility>

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

namespace tenure::test {
namespace {

struct Free {
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(X509_EXTENSION* extension) const { X509_EXTENSION_free(extension); }
  void operator()(BIO* bio) const { BIO_free(bio); }
};
using Key = std::unique_ptr<EVP_PKEY, Free>;
using Paper = std::unique_ptr<X509, Free>;

Key make_key() {
  return Key(EVP_EC_gen("prime256v1"));
}

void extend(X509& paper, X509& issuer, std::pair<int, std::string> what) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, &issuer, &paper, nullptr, nullptr, 0);
  const std::unique_ptr<X509_EXTENSION, Free> extension(
      X509V3_EXT_conf_nid(nullptr, &context, what.first, what.second.c_str()));
  if (!extension || X509_add_ext(&paper, extension.get(), -1) != 1) {
    throw std::runtime_error("OpenSSL does not take " + what.second);
  }
}

/// Unsigned certificate.
Paper make_paper(EVP_PKEY& key, const std::string& name, int hours) {
  Paper paper(X509_new());
  X509_set_version(paper.get(), X509_VERSION_3);
  static long serial = 0;
  ASN1_INTEGER_set(X509_get_serialNumber(paper.get()), ++serial);
  constexpr long hour = 3600;
  X509_gmtime_adj(X509_getm_notBefore(paper.get()), -48 * hour);
  X509_gmtime_adj(X509_getm_notAfter(paper.get()), hours * hour);
  X509_set_pubkey(paper.get(), &key);
  X509_NAME_add_entry_by_txt(X509_get_subject_name(paper.get()), "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
  return paper;
}

template <class Write>
void write_pem(const std::filesystem::path& path, Write write) {
  const std::unique_ptr<BIO, Free> file(BIO_new_file(path.c_str(), "w"));
  if (!file || write(file.get()) != 1) {
    throw std::runtime_error("cannot write " + path.string());
  }
}

Certificate save(const TemporaryFolder& folder, const std::string& name,
                 std::pair<X509*, EVP_PKEY*> what) {
  Certificate saved{.file = folder / (name + ".pem"), .key = folder / (name + ".key")};
  write_pem(saved.file, [&](BIO* file) { return PEM_write_bio_X509(file, what.first); });
  write_pem(saved.key, [&](BIO* file) {
    return PEM_write_bio_PrivateKey(file, what.second, nullptr, nullptr, 0, nullptr, nullptr);
  });
  return saved;
}

}  // namespace

struct Authority::Keys {
  Key key = make_key();
  Paper paper = make_paper(*key, "authority", 48);
};

Authority::Authority() : keys_(std::make_unique<Keys>()) {
  auto& paper = *keys_->paper;
  X509_set_issuer_name(&paper, X509_get_subject_name(&paper));
  extend(paper, paper, {NID_basic_constraints, "critical,CA:TRUE"});
  extend(paper, paper, {NID_subject_key_identifier, "hash"});
  X509_sign(&paper, keys_->key.get(), EVP_sha256());
  own_ = save(folder_, "ca", {&paper, keys_->key.get()});
}

Authority::~Authority() = default;

Certificate Authority::sign(const Subject& subject) {
  const auto key = make_key();
  const auto paper = make_paper(*key, subject.name, subject.hours);
  X509_set_issuer_name(paper.get(), X509_get_subject_name(keys_->paper.get()));
  extend(*paper, *keys_->paper, {NID_subject_alt_name, subject.alternatives});
  extend(*paper, *keys_->paper, {NID_authority_key_identifier, "keyid"});
  X509_sign(paper.get(), keys_->key.get(), EVP_sha256());
  return save(folder_, subject.name, {paper.get(), key.get()});
}

net::ServerTlsFiles Authority::server_files(const Certificate& certificate) {
  return {.certificate = content_of(certificate.file), .key = content_of(certificate.key)};
}

net::ServerTlsFiles Authority::mutual_files(const Certificate& certificate) const {
  auto files = server_files(certificate);
  files.client_ca = content_of(file());
  return files;
}

}  // namespace tenure::test
