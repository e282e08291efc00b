#pragma once

#include <cstddef>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tenure/error.hpp>
#include <tenure/fence.hpp>
#include <tenure/ids.hpp>

struct redisContext;  // of hiredis
struct redisReply;    // of hiredis

namespace tenure {

/// How a RedisFence stores its tokens.
struct RedisFenceOptions {
  /// Prefix of the keys of tokens, followed by the resource name; up to 1,024 bytes without braces.
  /// All writers of a resource must use the same prefix.
  std::string key_prefix = "tenure:fence:";
};

/// Redis command that writes one key: {"SET", "balance", {"70"}}.
struct RedisWrite {
  std::string command;                      ///< Name of the command: `HSET`.
  std::string key;                          ///< Key that it writes.
  std::vector<std::string> arguments = {};  ///< Arguments after the key.
};

/// Fence in a Redis server, beside the data it protects (fence.hpp explains fences). The check of
/// the token and the writes are one script, which Redis executes atomically. Link
/// tenure::fence_redis.
///
///     fence.admit("accounts/42", token, {{"HSET", "{accounts/42}", {"balance", "70"}}})
///
/// Scripts of your own start with the text of lua() and call tenure_admit(KEYS[1], ARGV[1]) before
/// they write; key_of() returns KEYS[1], and read() decodes their reply.
///
/// In a Redis Cluster the keys of the writes must be in the slot of the fence: put the resource in
/// braces, as above. Redis must not evict keys without expiry (maxmemory-policy allkeys-*), because
/// an evicted token readmits older ones. As durable as the server: with appendfsync everysec, or
/// after a failover, recent tokens may be lost, but only together with their writes.
///
/// Uses one connection and is, like the connection, not thread safe. hiredis writes to broken
/// connections, so the program has to ignore SIGPIPE.
class RedisFence {
 public:
  /// Maximum number of writes per call, and of arguments per write.
  static constexpr std::size_t writes_max = 1'000;
  static constexpr std::size_t arguments_max = 1'000;

  /// Loads the script into the server. invalid_argument if the server may evict tokens.
  [[nodiscard]] static Result<RedisFence> on(redisContext& connection,
                                             const RedisFenceOptions& options = {});

  /// As Fence::admit(), and executes the writes in order if the token is admitted. Without writes
  /// it only rejects smaller tokens from now on. Further errors (not_checked):
  ///   - resource_exhausted: more than writes_max or arguments_max, or the server is out of memory;
  ///     nothing was written;
  ///   - invalid_argument: Redis rejected a write. It does not roll back, so the token and the
  ///     writes before it remain;
  ///   - unavailable: connection lost or server not ready; the script may have run.
  [[nodiscard]] FenceResult admit(std::string_view resource, FencingToken token,
                                  std::span<const RedisWrite> writes = {});
  [[nodiscard]] FenceResult admit(std::string_view resource, FencingToken token,
                                  std::initializer_list<RedisWrite> writes);

  /// As Fence::admit_once(), otherwise as above. Also resolves `unavailable`: repeat the call;
  /// `reused` means that the writes were executed.
  [[nodiscard]] FenceResult admit_once(std::string_view resource, FencingToken token,
                                       std::span<const RedisWrite> writes = {});
  [[nodiscard]] FenceResult admit_once(std::string_view resource, FencingToken token,
                                       std::initializer_list<RedisWrite> writes);

  /// Largest token admitted for `resource`; 0 if there is none.
  [[nodiscard]] Result<FencingToken> highest(std::string_view resource);

  /// Lua source that defines tenure_admit(key, token, once); its first lines document it.
  [[nodiscard]] static std::string_view lua() noexcept;
  /// Key of the token of a resource: the prefix, and the resource in braces.
  [[nodiscard]] std::string key_of(std::string_view resource) const;
  /// Decodes the reply of a script that returned {tenure_admit(...)} for this token. A null reply,
  /// which hiredis returns for a broken connection, is `unavailable`.
  [[nodiscard]] static FenceResult read(const redisReply* reply, FencingToken token);

 private:
  RedisFence(redisContext& connection, RedisFenceOptions options);
  FenceResult decide(const fence::TokenCheck& check, std::span<const RedisWrite> writes);

  redisContext* connection_;
  RedisFenceOptions options_;
  std::string script_;  ///< SHA-1 of the loaded script, for EVALSHA.
};

}  // namespace tenure
