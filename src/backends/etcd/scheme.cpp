// etcd://user:password@host:port,host:port/root?tls_ca=FILE&tls_cert=FILE&tls_key=FILE
// etcds://…, the same through TLS
//
// Part of the library tenure_etcd: a program that links it can connect() to etcd; other programs do
// not need its dependencies.

#include <memory>
#include <utility>

#include "backends/etcd/backend.hpp"
#include "backends/etcd/url.hpp"
#include "backends/schemes.hpp"

namespace tenure::backends::etcd {
namespace {

Result<std::unique_ptr<Backend>> open_etcd(Url& url, const ConnectOptions& options) {
  const auto address = address_from(url, options.request_timeout);
  if (!address) {
    return std::unexpected(address.error());
  }
  auto opened = EtcdBackend::open(*address, options.request_timeout);
  if (!opened) {
    return std::unexpected(std::move(opened).error());
  }
  return *std::move(opened);
}

const bool is_added = [] {
  add_scheme("etcd", open_etcd);
  add_scheme("etcds", open_etcd);
  return true;
}();

}  // namespace
}  // namespace tenure::backends::etcd

/// Symbol that the package references, so that a linker keeps this file of a static library.
extern "C" bool tenure_has_etcd() {
  return tenure::backends::etcd::is_added;
}
