#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "support/redis/server.hpp"

namespace tenure::test {

/// Primary, replica and three Sentinels that monitor them as the service "locks". Automatic
/// failover needs a minute, so that on a busy machine nothing happens that a test does not request.
class RedisGroup {
 public:
  struct Options {
    std::string sentinel_password{};
    /// TLS options of redis-server; empty: no TLS. command() does not use TLS.
    std::vector<std::string> tls{};
  };
  RedisGroup() : RedisGroup(Options{}) {}
  explicit RedisGroup(const Options& options);

  /// "redis+sentinel://…/locks" or "rediss+sentinel://…/locks", followed by `rest`.
  [[nodiscard]] std::string url(std::string_view rest = "") const;
  [[nodiscard]] RedisServer& primary() { return *servers_[primary_]; }
  [[nodiscard]] RedisServer& replica() { return *servers_[1 - primary_]; }
  [[nodiscard]] RedisServer& sentinel(std::size_t which) { return *sentinels_[which]; }

  /// Stops the replication; the replica keeps its data.
  void disconnect_replica();
  /// Makes the replica the primary, and returns when the Sentinels report it. The old primary is
  /// not changed.
  void promote_replica();
  /// Kills the primary, then promotes the replica.
  void fail_over();
  /// Restarts the killed server as a replica, and waits until it is in sync.
  void restore_replica();

 private:
  std::vector<std::unique_ptr<RedisServer>> servers_;
  std::size_t primary_ = 0;
  std::vector<std::unique_ptr<RedisServer>> sentinels_;
};

/// Stops the replication of this server; its replicas keep their data.
void disconnect_replicas(RedisServer& primary);

}  // namespace tenure::test
