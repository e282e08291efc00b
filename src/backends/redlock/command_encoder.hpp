#pragma once

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include <tenure/ids.hpp>

#include "backends/backend.hpp"
#include "backends/redis/command_encoder.hpp"
#include "backends/redlock/scripts.hpp"

namespace tenure::backends::redlock {

/// Encodes the operations on votes as EVALSHA commands in wire format (RESP2). The arguments and
/// results of each script are documented in scripts/. Immutable, so thread safe.
class CommandEncoder {
 public:
  /// `client`: id of the client, from redis::new_client_id().
  CommandEncoder(std::string name_space, std::string client);

  /// Channel of this client's notifications.
  [[nodiscard]] std::string channel() const { return channels_ + client_; }

  /// Arguments of a vote.
  struct Vote {
    /// Specification of the acquire request.
    const AcquireSpec& spec;
    /// Member id of the acquisition.
    std::string_view member;
    /// TTL of the vote.
    std::chrono::milliseconds ttl{};
    /// Proposed fencing token.
    std::uint64_t token = 0;
    /// The client waits and is to be notified of a release.
    bool waits = false;
    /// The server may have the client on its wake list already.
    bool was_refused = false;
  };
  /// vote.lua, or vote_plain.lua. The deadline is set by set_not_after().
  [[nodiscard]] std::string vote(const Vote& vote) const;
  /// Sets the deadline of an encoded vote: a time of the server's own clock in µs. A vote that
  /// arrives later is ignored, because it would occupy the server for a whole TTL.
  static void set_not_after(std::string& vote, std::int64_t micros);

  /// write_back.lua: stores the chosen token on a server that voted.
  [[nodiscard]] std::string write_back(const AcquireSpec& spec, std::string_view member,
                                       FencingToken token) const;
  /// Whether the client still waits for the lock and stays on the wake list.
  enum class Waits : std::uint8_t { still, no_longer };
  /// Arguments of a release.
  struct Release {
    /// Specification of the acquire request.
    const AcquireSpec& spec;
    /// Member id of the acquisition.
    std::string_view member;
    /// Fencing token of the hold.
    FencingToken token{};
    /// TTL of the vote; part of the expected head.
    std::chrono::milliseconds ttl{};
    /// Whether the client stays on the wake list.
    Waits waits = Waits::still;
  };
  /// withdraw_vote.lua for a hold; notifies the next client.
  [[nodiscard]] std::string release(const Release& release) const;
  /// withdraw_vote.lua for a failed attempt; notifies no client, because the lock was not free.
  [[nodiscard]] std::string withdraw(const AcquireSpec& spec, std::string_view member,
                                     Waits waits) const;
  /// extend.lua, or extend_plain.lua. `change`: number of the TTL change; 0: renewal.
  [[nodiscard]] std::string extend(const AcquireSpec& spec, std::string_view member,
                                   std::chrono::milliseconds ttl, RequestId change) const;
  /// holder.lua: which acquisition has the server's vote.
  [[nodiscard]] std::string holder(std::string_view name) const;
  /// force_release.lua: withdraws the vote on behalf of an operator.
  [[nodiscard]] std::string force_release(std::string_view name) const;

 private:
  /// What the caller knows about the head of the lock.
  struct ExpectedHead {
    /// Fencing token; "0": none was chosen.
    std::string_view token;
    /// Prefix of the head if nothing has changed since the vote and no client waits; "-": do not
    /// notify.
    std::string_view prefix;
  };
  /// Common part of release() and withdraw().
  [[nodiscard]] std::string withdraw_vote(const AcquireSpec& spec, std::string_view member,
                                          const ExpectedHead& expected, Waits waits) const;

  /// Id of the client.
  std::string client_;
  /// Prefix of all channel names.
  std::string channels_;
  /// Key names, the same as those of redis://.
  redis::CommandEncoder keys_;
};

/// Member id of an acquisition: lease and request.
[[nodiscard]] std::string member_of(LeaseId lease, RequestId request);

}  // namespace tenure::backends::redlock
