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
struct redisReply;    // likewise

namespace tenure {

/// Where a RedisFence keeps its tokens.
struct RedisFenceOptions {
  /// Stands before the name of the resource in the key of its token; up to 1,024 bytes without
  /// braces. Whoever writes the same resources must use the same.
  std::string key_prefix = "tenure:fence:";
};

/// One command of Redis that changes one key: {"SET", "balance", {"70"}}.
struct RedisWrite {
  std::string command;                      ///< Its name: `HSET`.
  std::string key;                          ///< What it changes.
  std::vector<std::string> arguments = {};  ///< What follows the key.
};

/// A fence in a Redis server, beside what it protects (see fence.hpp for what a fence is). The
/// check of the token and the writes are one script, which nobody else's command can interrupt.
/// Link tenure::fence_redis.
///
///     fence.admit("accounts/42", token, {{"HSET", "{accounts/42}", {"balance", "70"}}})
///
/// Scripts of your own begin with the text of lua() and ask tenure_admit(KEYS[1], ARGV[1]) before
/// they write; key_of() names KEYS[1], read() understands what they return.
///
/// In a Redis Cluster the keys of the writes must hash with the fence: put the resource in braces,
/// as above. Redis must not evict what has no expiry (maxmemory-policy allkeys-*): a token that is
/// gone lets its dead holders in. As durable as that server: with appendfsync everysec, or after a
/// failover, the newest tokens may be lost, though never without the writes that came with them.
///
/// Belongs to one connection. Not thread-safe, as that connection is not. hiredis writes to broken
/// connections: a program that uses it has to ignore SIGPIPE.
class RedisFence {
 public:
  /// How many writes one call takes, and how many arguments each of them.
  static constexpr std::size_t writes_max = 1'000;
  static constexpr std::size_t arguments_max = 1'000;

  /// Sends the script to the server. A server that may evict tokens: invalid_argument.
  [[nodiscard]] static Result<RedisFence> on(redisContext& connection,
                                             const RedisFenceOptions& options = {});

  /// As Fence::admit(), and does the writes, in order, if the token is admitted. Without writes it
  /// only shuts older holders out from now on. What can go wrong besides (not_checked): more than
  /// writes_max or arguments_max, or the server has no memory left: resource_exhausted, nothing was
  /// written · Redis refused a write: invalid_argument; the token and the writes before it stand,
  /// for Redis takes nothing back · the connection broke, or the server is not ready: unavailable;
  /// it is not known whether the script ran.
  [[nodiscard]] Admission admit(std::string_view resource, FencingToken token,
                                std::span<const RedisWrite> writes = {});
  [[nodiscard]] Admission admit(std::string_view resource, FencingToken token,
                                std::initializer_list<RedisWrite> writes);

  /// As Fence::admit_once(), otherwise as above. After `unavailable`, asking again tells: `reused`
  /// means that the writes have been done.
  [[nodiscard]] Admission admit_once(std::string_view resource, FencingToken token,
                                     std::span<const RedisWrite> writes = {});
  [[nodiscard]] Admission admit_once(std::string_view resource, FencingToken token,
                                     std::initializer_list<RedisWrite> writes);

  /// The newest token that has been at `resource`; 0 if none has.
  [[nodiscard]] Result<FencingToken> highest(std::string_view resource);

  /// Lua text that defines tenure_admit(key, token, once): see its first lines.
  [[nodiscard]] static std::string_view lua() noexcept;
  /// The key of a resource's token: the prefix, and the resource in braces.
  [[nodiscard]] std::string key_of(std::string_view resource) const;
  /// Reads the answer of a script that returned {tenure_admit(...)} for this token. Nothing, as
  /// hiredis gives it for a broken connection, is `unavailable`.
  [[nodiscard]] static Admission read(const redisReply* reply, FencingToken token);

 private:
  RedisFence(redisContext& connection, RedisFenceOptions options);
  Admission decide(const fence::Question& question, std::span<const RedisWrite> writes);

  redisContext* connection_;
  RedisFenceOptions options_;
  std::string script_;  ///< The name that the server gave to the script: its SHA-1.
};

}  // namespace tenure
