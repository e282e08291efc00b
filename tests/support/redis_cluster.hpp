#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "support/redis_server.hpp"

namespace tenure::test {

/// Six nodes: three primaries, each with a replica. They would wait for a minute before they do
/// something by themselves, so that nothing happens on a busy machine that the test does not ask
/// for.
class RedisCluster {
 public:
  struct Options {
    /// Who is next to each other is with another node: as many ranges of slots as there can be.
    bool is_fragmented = false;
    /// Not empty: all of it speaks TLS, by these options of redis-server; our questions are plain.
    std::vector<std::string> tls{};
  };
  RedisCluster() : RedisCluster(Options{}) {}
  explicit RedisCluster(const Options& options);

  /// "redis+cluster://…" of all, or "rediss+cluster://…", and this.
  [[nodiscard]] std::string url(std::string_view rest = "") const;

  /// What the node of this key answers; the command has to name it.
  std::string command(const std::string& key, const std::vector<std::string>& words);
  /// The primary that has a key, and its replica.
  [[nodiscard]] RedisServer& primary_of(const std::string& key);
  [[nodiscard]] RedisServer& replica_of(const std::string& key);
  [[nodiscard]] RedisServer& primary(std::size_t shard) { return *nodes_[primaries_[shard]]; }
  [[nodiscard]] std::size_t shard_of(const std::string& key);
  /// Some name whose lock is on that shard.
  [[nodiscard]] std::string name_on(std::size_t shard);
  void for_each_primary(const std::function<void(RedisServer&)>& call);

  /// The replica of this shard hears nothing any more, and keeps what it has.
  void disconnect_replica(std::size_t shard);
  /// Makes a primary of the replica of this shard, now, and returns when all know.
  void promote_replica(std::size_t shard);
  /// The same, after the primary died.
  void fail_over(std::size_t shard);

  /// What died is back, as a replica; who was cut off is not; all replicas have everything.
  enum class Keys : std::uint8_t { keep, flush };
  void restore(Keys keys = Keys::flush);

  /// The slot of this key goes to another shard, key by key, as resharding does it.
  void begin_move(const std::string& key, std::size_t to);
  /// It stays where it is, as if nothing had begun.
  void cancel_move(const std::string& key, std::size_t to);
  void move_keys(const std::string& key, std::size_t to);
  void end_move(const std::string& key, std::size_t to);

 private:
  [[nodiscard]] std::string id_of(std::size_t node);
  [[nodiscard]] std::string head_of_name_on(std::size_t shard);

  std::vector<std::unique_ptr<RedisServer>> nodes_;
  std::vector<std::size_t> primaries_;  ///< By shard: which node.
  std::vector<std::size_t> replicas_;
};

}  // namespace tenure::test
