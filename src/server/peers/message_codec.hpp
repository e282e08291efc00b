#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <tenure/error.hpp>

#include "core/bytes.hpp"
#include "server/peers/frame.hpp"
#include "server/raft/message.hpp"

namespace tenure::server::peers {

/// First number of the meta of a frame. Wire format: numbers are never reused. A new kind gets the
/// next number, and a new protocol version (handshake.hpp) if older members cannot ignore it.
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
  // Handshake: handshake.hpp.
  hello = 64,
  welcome = 65,
  proof = 66,
  refusal = 67,
};

/// Writer of a meta that starts with the kind.
[[nodiscard]] core::ByteWriter begin_meta(Kind kind);

/// Limits of one message. Both ends check them: the sender splits, the receiver rejects.
struct MessageLimits {
  /// Entries of one AppendEntries. A longer one is split.
  std::size_t entries_max = 1024;
  /// Total payload of one AppendEntries, unless a single entry is larger.
  std::size_t entries_bytes_max = std::size_t{1} << 20;
  /// Payload of one entry. A larger one could never be replicated, so the limit exceeds every entry
  /// that the store accepts.
  std::size_t entry_bytes_max = std::size_t{64} << 20;
};

/// The kind of a frame; 0 if it is empty.
[[nodiscard]] std::uint8_t kind_of(const ReceivedFrame& frame) noexcept;

/// REQUIRES: not an InstallSnapshot; snapshots are sent in chunks.
[[nodiscard]] Frame encode(const raft::Message& message);
/// `invalid_argument`: not a message of encode(), or beyond the limits.
[[nodiscard]] Result<raft::Message> decode(const ReceivedFrame& frame, const MessageLimits& limits);

/// Splits a message into several within the limits, to be sent in order. Each part is itself a
/// valid AppendEntries.
[[nodiscard]] std::vector<raft::AppendEntries> split(raft::AppendEntries message,
                                                     const MessageLimits& limits);

}  // namespace tenure::server::peers
