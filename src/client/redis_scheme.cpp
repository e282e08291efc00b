// redis://user:password@host:port/database?namespace=NAME&tls_ca=FILE&tls_cert=FILE&tls_key=FILE
// rediss://…, the same through TLS
//
// A library of its own (tenure_redis): whoever links it can connect() to Redis, and whoever does
// not needs none of what it needs.

#include <memory>
#include <utility>

#include "backends/redis/address.hpp"
#include "backends/redis/redis_backend.hpp"
#include "client/schemes.hpp"

namespace tenure::detail {
namespace {

Result<std::unique_ptr<backends::Backend>> open_redis(backends::Url& url,
                                                      const ConnectOptions& options) {
  const auto address = backends::redis::address_from(url, options.request_timeout);
  if (!address) {
    return std::unexpected(address.error());
  }
  auto opened = backends::redis::RedisBackend::open(*address, options.request_timeout);
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
  add_scheme("redis", open_redis);
  add_scheme("rediss", open_redis);
  return true;
}();

}  // namespace
}  // namespace tenure::detail

/// Linkers leave out what nobody mentions; the package mentions this.
extern "C" bool tenure_has_redis() {
  return tenure::detail::is_added;
}
