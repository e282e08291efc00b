#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <tenure/error.hpp>

#include "server/raft/entry.hpp"

namespace tenure::server::raft {

struct Vote {
  Term term{};
  MemberId voted_for{};

  friend bool operator==(const Vote&, const Vote&) = default;
};

// The vote file as bytes; no I/O here.
//
// The file has two slots, each in sectors of its own. A slot: "TENUREV1", number of the write (8),
// term (8), vote (8), CRC-32C of these (4), "mirrored" (8), CRC-32C of all before it (4), zeros.
//
// A write puts the same content into both slots, and makes the first durable before it touches the
// second. So at most one slot is torn by a crash, and the other one has the newest vote that any
// other member can know of. A slot that decays later is covered by the other one in the same way.
//
// Earlier versions wrote the slots in turn and without "mirrored". There, a bad slot may have been
// the newest vote, and the remaining slot is not trusted. They still read what this version writes.

inline constexpr std::size_t vote_slot_bytes = 4096;
inline constexpr std::size_t vote_slot_count = 2;

/// One write of the vote file. Later writes have larger numbers.
struct VoteSlot {
  std::uint64_t number{};
  Vote vote{};
};

/// ENSURES: the result has vote_slot_bytes.
[[nodiscard]] std::string encode_vote_slot(const VoteSlot& slot);

struct VoteScan {
  VoteSlot newest{};
  /// Slot that `newest` was read from.
  std::size_t newest_at{};
  /// Both slots hold `newest`, as a completed write leaves them.
  bool is_mirrored{};
  /// What is wrong with the other slot; empty if it is readable.
  std::string damage{};
};

/// The vote that counts. `invalid_argument` if the newest vote may be lost: no slot is readable, or
/// only one that an earlier version wrote.
[[nodiscard]] Result<VoteScan> scan_votes(
    const std::array<std::string_view, vote_slot_count>& slots);

}  // namespace tenure::server::raft
