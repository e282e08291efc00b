// redlock://user:password@host:port,host:port,…/database?…
// redlocks://…, the same through TLS
//
// Part of the library tenure_redis: a program that links it can connect() to Redis; other programs
// do not need its dependencies.

#include <memory>
#include <utility>

#include "backends/redlock/redlock_backend.hpp"
#include "backends/redlock/servers.hpp"
#include "backends/schemes.hpp"

namespace tenure::backends::redlock {
namespace {

Result<std::unique_ptr<Backend>> open_redlock(Url& url, const ConnectOptions& options) {
  auto servers = servers_from(url, options.request_timeout);
  if (!servers) {
    return std::unexpected(std::move(servers).error());
  }
  auto opened = RedlockBackend::open(*std::move(servers), options.request_timeout);
  if (!opened) {
    return std::unexpected(std::move(opened).error());
  }
  if (options.on_warning) {
    for (const auto& doubt : (*opened)->doubts()) {
      options.on_warning(doubt);
    }
  }
  return *std::move(opened);
}

const bool is_added = [] {
  add_scheme("redlock", open_redlock);
  add_scheme("redlocks", open_redlock);
  return true;
}();

}  // namespace
}  // namespace tenure::backends::redlock

/// Symbol that the package asks for, so that a linker keeps this file of a static library.
extern "C" bool tenure_has_redlock() {
  return tenure::backends::redlock::is_added;
}
