// zookeeper://user:password@host:port,host:port/chroot?acl=world|creator
//
// Part of the library tenure_zookeeper: a program that links it can connect() to ZooKeeper; other
// programs do not need its dependencies.

#include <memory>
#include <utility>

#include "backends/schemes.hpp"
#include "backends/zookeeper/backend.hpp"
#include "backends/zookeeper/url.hpp"

namespace tenure::backends::zookeeper {
namespace {

Result<std::unique_ptr<Backend>> open_zookeeper(Url& url, const ConnectOptions& options) {
  auto address = address_from(url, options.request_timeout);
  if (!address) {
    return std::unexpected(std::move(address).error());
  }
  auto opened = ZookeeperBackend::open(*std::move(address), options.request_timeout);
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
}  // namespace tenure::backends::zookeeper

/// Symbol that the package references, so that a linker keeps this file of a static library.
extern "C" bool tenure_has_zookeeper() {
  return tenure::backends::zookeeper::is_added;
}
