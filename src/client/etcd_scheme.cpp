// etcd://user:password@host:port,host:port/root?tls_ca=FILE&tls_cert=FILE&tls_key=FILE
// etcds://…, the same through TLS
//
// A library of its own (tenure_etcd): whoever links it can connect() to etcd, and whoever does not
// needs none of what it needs.

#include <memory>
#include <utility>

#include "backends/etcd/address.hpp"
#include "backends/etcd/etcd_backend.hpp"
#include "client/schemes.hpp"

namespace tenure::detail {
namespace {

Result<std::unique_ptr<backends::Backend>> open_etcd(backends::Url& url,
                                                     const ConnectOptions& options) {
  const auto address = backends::etcd::address_from(url, options.request_timeout);
  if (!address) {
    return std::unexpected(address.error());
  }
  auto opened = backends::etcd::EtcdBackend::open(*address, options.request_timeout);
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
}  // namespace tenure::detail

/// Linkers leave out what nobody mentions; the package mentions this.
extern "C" bool tenure_has_etcd() {
  return tenure::detail::is_added;
}
