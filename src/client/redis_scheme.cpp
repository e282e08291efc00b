// redis://user:password@host:port/database?namespace=NAME&tls_ca=FILE&tls_cert=FILE&tls_key=FILE
// redis+sentinel://user:password@host:port,…/service/database?sentinel_user=…&sentinel_password=…
// redis+cluster://user:password@host:port,…
// rediss://…, rediss+sentinel://… and rediss+cluster://…: the same through TLS
// redlock://user:password@host:port,host:port,…/database?…, redlocks://…: several, that vote
//
// A library of its own (tenure_redis): whoever links it can connect() to Redis, and whoever does
// not needs none of what it needs.

#include <memory>
#include <string>
#include <utility>

#include "backends/redis/deployment.hpp"
#include "backends/redis/redis_backend.hpp"
#include "backends/redlock/redlock_backend.hpp"
#include "backends/redlock/servers.hpp"
#include "client/schemes.hpp"

namespace tenure::detail {
namespace {

Result<std::unique_ptr<backends::Backend>> open_redis(backends::Url& url,
                                                      const ConnectOptions& options) {
  const auto deployment = backends::redis::deployment_from(url, options.request_timeout);
  if (!deployment) {
    return std::unexpected(deployment.error());
  }
  auto opened = backends::redis::RedisBackend::open(*deployment, options.request_timeout);
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

Result<std::unique_ptr<backends::Backend>> open_redlock(backends::Url& url,
                                                        const ConnectOptions& options) {
  auto servers = backends::redlock::servers_from(url, options.request_timeout);
  if (!servers) {
    return std::unexpected(std::move(servers).error());
  }
  auto opened =
      backends::redlock::RedlockBackend::open(*std::move(servers), options.request_timeout);
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
  for (const auto* form : {"", "+sentinel", "+cluster"}) {
    add_scheme(std::string("redis") + form, open_redis);
    add_scheme(std::string("rediss") + form, open_redis);
  }
  add_scheme("redlock", open_redlock);
  add_scheme("redlocks", open_redlock);
  return true;
}();

}  // namespace
}  // namespace tenure::detail

/// Linkers leave out what nobody mentions; the package mentions this.
extern "C" bool tenure_has_redis() {
  return tenure::detail::is_added;
}
