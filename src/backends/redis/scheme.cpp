// redis://user:password@host:port/database?namespace=NAME&tls_ca=FILE&tls_cert=FILE&tls_key=FILE
// redis+sentinel://user:password@host:port,…/service/database?sentinel_user=…&sentinel_password=…
// redis+cluster://user:password@host:port,…
// rediss://…, rediss+sentinel://… and rediss+cluster://…: the same through TLS
//
// Part of the library tenure_redis: a program that links it can connect() to Redis; other programs
// do not need its dependencies.

#include <memory>
#include <string>
#include <utility>

#include "backends/redis/backend.hpp"
#include "backends/redis/url.hpp"
#include "backends/schemes.hpp"

namespace tenure::backends::redis {
namespace {

Result<std::unique_ptr<Backend>> open_redis(Url& url, const ConnectOptions& options) {
  const auto deployment = deployment_from(url, options.request_timeout);
  if (!deployment) {
    return std::unexpected(deployment.error());
  }
  auto opened = RedisBackend::open(*deployment, options.request_timeout);
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
  for (const auto* form : {"", "+sentinel", "+cluster"}) {
    add_scheme(std::string("redis") + form, open_redis);
    add_scheme(std::string("rediss") + form, open_redis);
  }
  return true;
}();

}  // namespace
}  // namespace tenure::backends::redis

/// Symbol that the package asks for, so that a linker keeps this file of a static library.
extern "C" bool tenure_has_redis() {
  return tenure::backends::redis::is_added;
}
