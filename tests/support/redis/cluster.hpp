#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "support/redis/server.hpp"

namespace tenure::test {

/// Redis Cluster of six nodes: three primaries, each with a replica. Automatic failover needs a
/// minute, so that on a busy machine nothing happens that a test does not request.
class RedisCluster {
 public:
  struct Options {
    /// Neighbouring slots are on different nodes: the largest possible number of ranges.
    bool is_fragmented = false;
    /// TLS options of redis-server; empty: no TLS. command() does not use TLS.
    std::vector<std::string> tls{};
  };
  RedisCluster() : RedisCluster(Options{}) {}
  explicit RedisCluster(const Options& options);

  /// "redis+cluster://…" with all nodes, or "rediss+cluster://…", followed by `rest`.
  [[nodiscard]] std::string url(std::string_view rest = "") const;

  /// Runs a command on the primary of this key; the command has to name the key.
  std::string command(const std::string& key, const std::vector<std::string>& words);
  /// Primary that owns the key's slot, and its replica.
  [[nodiscard]] RedisServer& primary_of(const std::string& key);
  [[nodiscard]] RedisServer& replica_of(const std::string& key);
  [[nodiscard]] RedisServer& primary(std::size_t shard) { return *nodes_[primaries_[shard]]; }
  [[nodiscard]] std::size_t shard_of(const std::string& key);
  /// Name of a lock on that shard.
  [[nodiscard]] std::string name_on(std::size_t shard);
  void for_each_primary(const std::function<void(RedisServer&)>& call);

  /// Stops the replication of this shard; the replica keeps its data.
  void disconnect_replica(std::size_t shard);
  /// Makes the replica of this shard the primary, and returns when all nodes know it.
  void promote_replica(std::size_t shard);
  /// Kills the primary, then promotes the replica.
  void fail_over(std::size_t shard);

  /// Restarts killed nodes as replicas, reconnects replicas, and waits until all are in sync.
  enum class Keys : std::uint8_t { keep, flush };
  void restore(Keys keys = Keys::flush);

  /// Migrates the slot of this key to another shard, key by key, as resharding does.
  void begin_move(const std::string& key, std::size_t to);
  /// Cancels the migration; the slot stays where it is.
  void cancel_move(const std::string& key, std::size_t to);
  void move_keys(const std::string& key, std::size_t to);
  void end_move(const std::string& key, std::size_t to);

 private:
  [[nodiscard]] std::string id_of(std::size_t node);
  [[nodiscard]] std::string head_of_name_on(std::size_t shard);

  std::vector<std::unique_ptr<RedisServer>> nodes_;
  /// Index of the node, by shard.
  std::vector<std::size_t> primaries_;
  std::vector<std::size_t> replicas_;
};

}  // namespace tenure::test
