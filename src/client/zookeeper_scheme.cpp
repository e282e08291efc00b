// zookeeper://user:password@host:port,host:port/chroot?acl=world|creator
//
// A library of its own (tenure_zookeeper): whoever links it can connect() to ZooKeeper, and whoever
// does not needs none of what it needs.

#include <memory>
#include <utility>

#include "backends/zookeeper/address.hpp"
#include "backends/zookeeper/zookeeper_backend.hpp"
#include "client/schemes.hpp"

namespace tenure::detail {
namespace {

Result<std::unique_ptr<backends::Backend>> open_zookeeper(backends::Url& url,
                                                          const ConnectOptions& options) {
  auto address = backends::zookeeper::address_from(url, options.request_timeout);
  if (!address) {
    return std::unexpected(std::move(address).error());
  }
  auto opened =
      backends::zookeeper::ZookeeperBackend::open(*std::move(address), options.request_timeout);
  if (!opened) {
    return std::unexpected(std::move(opened).error());
  }
  return *std::move(opened);
}

const bool is_added = [] {
  add_scheme("zookeeper", open_zookeeper);
  return true;
}();

}  // namespace
}  // namespace tenure::detail

/// Linkers leave out what nobody mentions; the package mentions this.
extern "C" bool tenure_has_zookeeper() {
  return tenure::detail::is_added;
}
