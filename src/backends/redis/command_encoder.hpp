#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include <tenure/ids.hpp>

#include "backends/backend.hpp"
#include "backends/redis/scripts.hpp"
#include "backends/redis/slots.hpp"

namespace tenure::backends::redis {

/// Member of a lock's record that makes an acquire request: the lease as 16 hexadecimal digits. In
/// a semaphore or a barging lock each request is a member of its own, so '.' and the request
/// follow.
[[nodiscard]] std::string member_of(const AcquireSpec& spec, LeaseId lease, RequestId request);
/// Lease at the beginning of a member; 0 if the text is no member.
[[nodiscard]] LeaseId lease_of(std::string_view member);

/// Random id of a client, part of its channel name. Short, because every record contains it.
[[nodiscard]] std::string new_client_id();

/// Encodes the operations on locks as EVALSHA commands in wire format (RESP2). The arguments and
/// results of each script are documented in scripts/. Immutable, so thread safe.
class CommandEncoder {
 public:
  /// Keys that a script may use.
  enum class KeyScope : std::uint8_t {
    /// Also the plain key of the same name.
    any,
    /// Keys of one cluster slot only.
    one_slot,
  };
  /// `client`: id of the client, from new_client_id().
  CommandEncoder(std::string name_space, std::string client, KeyScope scope = KeyScope::any);

  /// Channel of this client's notifications. In a cluster, ':' and the id of the publishing node
  /// follow.
  [[nodiscard]] std::string channel() const { return name_space_ + ":wake:" + client_; }

  /// acquire.lua, or acquire_barging.lua.
  [[nodiscard]] std::string acquire(const AcquireRequest& request,
                                    std::chrono::milliseconds ttl) const;
  /// release.lua, or release_barging.lua: releases one acquisition.
  [[nodiscard]] std::string release(const ReleaseRequest& request, std::string_view member) const;
  /// What leave.lua does with a request that was granted before: keep the hold, or release it.
  enum class IfGranted : std::uint8_t { keep, drop };
  /// leave.lua: withdraws a request.
  [[nodiscard]] std::string leave(const AcquireSpec& spec, std::string_view member,
                                  RequestId request, IfGranted if_granted) const;
  /// confirm.lua: whether the request holds the lock.
  [[nodiscard]] std::string confirm(const AcquireSpec& spec, std::string_view member,
                                    RequestId request) const;
  /// Removes a member with all of its requests.
  [[nodiscard]] std::string remove(const AcquireSpec& spec, std::string_view member) const;
  /// renew.lua, or renew_barging.lua. `words`: TTL and member in turn; '=' before a TTL permits the
  /// script to shorten it.
  [[nodiscard]] std::string renew(const AcquireSpec& spec,
                                  std::span<const std::string> words) const;
  /// expire.lua: removes expired members and grants the next waiters.
  [[nodiscard]] std::string expire(std::string_view name) const;
  /// downgrade.lua: turns an exclusive hold into a shared one.
  [[nodiscard]] std::string downgrade(const AcquireSpec& spec, std::string_view member,
                                      RequestId acquired) const;
  /// holders.lua: lists at most `most` holders.
  [[nodiscard]] std::string holders(std::string_view name, std::size_t most) const;
  /// force_release.lua: releases all holds on behalf of an operator.
  [[nodiscard]] std::string force_release(std::string_view name) const;

  /// Head key of a fair lock; the other keys of the lock begin with it.
  [[nodiscard]] std::string head_of(std::string_view name) const;
  /// Key of the largest token issued on this server; in a cluster in the slot of `key`, because a
  /// script may use keys of one slot only. It never expires.
  [[nodiscard]] std::string last_token_of(std::string_view key) const;
  /// First key of the lock's commands, by which a cluster routes them.
  [[nodiscard]] std::string key_of(const AcquireSpec& spec) const;

 private:
  /// Whether a script may also use the plain key of the lock's name.
  enum class PlainKey : bool { omit, include };
  /// Command of a script on the keys of a lock.
  [[nodiscard]] std::string on_lock(Script script, std::string_view name,
                                    std::span<const std::string_view> words,
                                    PlainKey plain = PlainKey::omit) const;
  [[nodiscard]] std::string on_lock(Script script, std::string_view name,
                                    std::initializer_list<std::string_view> words,
                                    PlainKey plain = PlainKey::omit) const {
    return on_lock(script, name, std::span(words.begin(), words.size()), plain);
  }
  /// release_barging.lua.
  [[nodiscard]] static std::string release_barging(std::string_view name, std::string_view member);
  /// Client id, owner and metadata, as stored in a member's detail.
  [[nodiscard]] std::string label_of(const AcquireSpec& spec) const;

  /// Prefix of all keys.
  std::string name_space_;
  /// Id of the client; begins with '@' in a cluster, so that the scripts know.
  std::string client_;
  /// Keys that a script may use.
  KeyScope scope_;
  /// Hash tags of the last-token keys by slot; null outside of a cluster.
  std::shared_ptr<const SlotTags> slot_tags_;
};

}  // namespace tenure::backends::redis
