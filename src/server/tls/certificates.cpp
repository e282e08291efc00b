#include "server/tls/certificates.hpp"

#include <algorithm>
#include <ctime>
#include <fstream>
#include <iterator>
#include <memory>

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include "sys/log.hpp"

namespace tenure::server {
namespace {

struct Free {
  void operator()(BIO* bio) const { BIO_free(bio); }
  void operator()(X509* certificate) const { X509_free(certificate); }
};

/// nullopt: the time in the certificate is invalid.
std::optional<std::chrono::sys_seconds> expiry_of(const X509& certificate) {
  std::tm time{};
  if (ASN1_TIME_to_tm(X509_get0_notAfter(&certificate), &time) != 1) {
    return std::nullopt;
  }
  return std::chrono::sys_seconds(std::chrono::seconds(timegm(&time)));
}

/// nullopt: the file cannot be opened.
std::optional<std::string> read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return std::nullopt;
  }
  return std::string(std::istreambuf_iterator<char>(file), {});
}

}  // namespace

Result<std::optional<net::ServerTlsFiles>> read_tls_files(const Config::Tls& tls) {
  if (tls.cert.empty()) {
    return std::nullopt;
  }
  net::ServerTlsFiles files;
  const std::pair<const std::filesystem::path*, std::string*> wanted[] = {
      {&tls.cert, &files.certificate}, {&tls.key, &files.key}, {&tls.client_ca, &files.client_ca}};
  for (const auto& [path, text] : wanted) {
    if (path->empty()) {
      continue;
    }
    auto read = read_file(*path);
    if (!read) {
      return fail(Errc::invalid_argument, "cannot read " + path->string());
    }
    *text = *std::move(read);
  }
  return files;
}

Result<std::chrono::sys_seconds> first_expiry(std::string_view pem) {
  // The whole chain: an expired intermediate certificate breaks connections too.
  const std::unique_ptr<BIO, Free> bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  std::optional<std::chrono::sys_seconds> first;
  while (const auto certificate =
             std::unique_ptr<X509, Free>(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr))) {
    const auto expiry = expiry_of(*certificate);
    first = first && expiry ? std::min(*first, *expiry) : (expiry ? expiry : first);
  }
  ERR_clear_error();  // PEM_read_bio_X509() leaves an error at the end of the text.
  if (!first) {
    return fail(Errc::invalid_argument, "no certificate in PEM format");
  }
  return *first;
}

void Certificates::add(Group group) {
  const sys::MutexGuard guard(mutex_);
  observe(group);
  groups_.push_back(std::move(group));
}

Result<void> Certificates::reload() {
  const sys::MutexGuard guard(mutex_);
  std::vector<Install> installs;
  for (const auto& group : groups_) {
    auto prepared = group.prepare();
    if (!prepared) {
      log::error("certificate_reload_failed", {{"error", prepared.error().detail}});
      return std::unexpected(std::move(prepared).error());
    }
    installs.push_back(*std::move(prepared));
  }
  // Nothing can fail from here on.
  for (auto& install : installs) {
    install();
  }
  std::ranges::for_each(groups_, [this](const Group& group) { observe(group); });
  if (!groups_.empty()) {
    log::info("certificates_reloaded");
  }
  return {};
}

bool Certificates::is_empty() const {
  const sys::MutexGuard guard(mutex_);
  return groups_.empty();
}

std::vector<Certificates::File> files_of(const Config::Tls& tls) {
  std::vector<Certificates::File> files{{.kind = "server", .path = tls.cert}};
  if (!tls.client_ca.empty()) {
    // The private key is not listed: it has no expiry.
    files.push_back({.kind = "client_ca", .path = tls.client_ca});
  }
  return files;
}

void Certificates::observe(const Group& group) const {
  for (const auto& file : group.files) {
    // A file that cannot be read keeps its last value in the metrics.
    if (const auto expiry = first_expiry(read_file(file.path).value_or(""))) {
      observe_(file.kind, *expiry);
    }
  }
}

}  // namespace tenure::server
