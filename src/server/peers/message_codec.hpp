#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <tenure/error.hpp>

#include "core/bytes.hpp"
#include "server/peers/frame.hpp"
#include "server/raft/message.hpp"

namespace tenure::server::peers {

/// What the meta of a frame begins with. Numbers are those of the wire: never used again for
/// something else. A new kind of message gets the next number, and a new version of the protocol
/// (greeting.hpp) if older members would not know what to do with it.
enum class Kind : std::uint8_t {
  append_entries = 1,
  append_result = 2,
  request_vote = 3,
  vote_result = 4,
  timeout_now = 5,
  probe = 6,
  probe_result = 7,
  removal_notice = 8,
  // Snapshots in chunks: snapshot_transfer.hpp.
  snapshot_begin = 32,
  snapshot_chunk = 33,
  snapshot_have = 34,
  // The first words on a connection: greeting.hpp.
  hello = 64,
  welcome = 65,
  proof = 66,
  refusal = 67,
};

/// Begins the meta of a frame.
[[nodiscard]] core::ByteWriter begin_meta(Kind kind);

struct MessageLimits {
  /// Of one AppendEntries. More are sent as several of them.
  std::size_t entries_max = 1024;
  /// Of its payloads together, unless one entry alone is longer.
  std::size_t entries_bytes_max = std::size_t{1} << 20;
  /// Of one payload. A longer one cannot be replicated at all, so this is far above any.
  std::size_t entry_bytes_max = std::size_t{64} << 20;
};

/// The kind of a frame; 0 if it is empty.
[[nodiscard]] std::uint8_t kind_of(const ReceivedFrame& frame) noexcept;

/// REQUIRES: no InstallSnapshot; snapshots travel in chunks.
[[nodiscard]] Frame encode(const raft::Message& message);
/// `invalid_argument` if it is anything but what encode() writes, within the limits.
[[nodiscard]] Result<raft::Message> decode(const ReceivedFrame& frame, const MessageLimits& limits);

/// The same as several messages within the limits, to be sent in this order: to a follower it looks
/// as if the leader had sent less at a time.
[[nodiscard]] std::vector<raft::AppendEntries> split(raft::AppendEntries message,
                                                     const MessageLimits& limits);

}  // namespace tenure::server::peers
