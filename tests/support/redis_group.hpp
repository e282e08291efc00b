#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "support/redis_server.hpp"

namespace tenure::test {

/// A primary, its replica and three SentinelResolver that watch both as the service "locks". They
/// would wait for a minute before they do something by themselves, so that nothing happens on a
/// busy machine that the test does not ask for.
class RedisGroup {
 public:
  struct Options {
    std::string sentinel_password{};
    /// Not empty: all of it speaks TLS, by these options of redis-server; our questions are plain.
    std::vector<std::string> tls{};
  };
  RedisGroup() : RedisGroup(Options{}) {}
  explicit RedisGroup(const Options& options);

  /// "redis+sentinel://…/locks", or "rediss+sentinel://…/locks", and this.
  [[nodiscard]] std::string url(std::string_view rest = "") const;
  [[nodiscard]] RedisServer& primary() { return *servers_[primary_]; }
  [[nodiscard]] RedisServer& replica() { return *servers_[1 - primary_]; }
  [[nodiscard]] RedisServer& sentinel(std::size_t which) { return *sentinels_[which]; }

  /// From now on the replica hears nothing of the primary, and keeps what it has.
  void disconnect_replica();
  /// Makes a primary of the replica, now, and returns when the SentinelResolver say so. What was
  /// the primary is left as it is.
  void promote_replica();
  /// The same, after the primary died.
  void fail_over();
  /// What died is back, as the replica, and has everything.
  void restore_replica();

 private:
  std::vector<std::unique_ptr<RedisServer>> servers_;
  std::size_t primary_ = 0;
  std::vector<std::unique_ptr<RedisServer>> sentinels_;
};

/// Makes replicas of this server hear nothing of it any more; they keep what they have.
void disconnect_replicas(RedisServer& primary);

}  // namespace tenure::test
