// redlock://user:password@host:port,host:port,…/database?…
// redlocks://…, the same through TLS
//
// Part of the library tenure_redis: a program that links it can connect() to Redis; other programs
// do not need its dependencies.

#include <memory>
#include <utility>

#include "backends/redlock/backend.hpp"
#include "backends/redlock/url.hpp"
#include "backends/schemes.hpp"

namespace tenure::backends::redlock {
namespace {

Result<std::unique_ptr<Backend>> open_redlock(Url& url, const ConnectOptions& options) {
  auto deployment = deployment_from(url, options.request_timeout);
  if (!deployment) {
    return std::unexpected(std::move(deployment).error());
  }
  auto opened = RedlockBackend::open(*std::move(deployment), options.request_timeout);
  if (!opened) {
    return std::unexpected(std::move(opened).error());
  }
  if (options.on_warning) {
    for (const auto& warning : (*opened)->warnings()) {
      options.on_warning(warning);
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
