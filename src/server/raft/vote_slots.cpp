#include "server/raft/vote_slots.hpp"

#include <optional>
#include <utility>

#include "core/bytes.hpp"

namespace tenure::server::raft {
namespace {

constexpr std::string_view vote_magic = "TENUREV1";
constexpr std::string_view mirrored_magic = "mirrored";
// Magic (8), number, term and vote (8 each), checksum (4).
constexpr std::size_t vote_bytes = 8 + 3 * 8 + 4;
constexpr std::size_t mirrored_bytes = vote_bytes + 8 + 4;

struct Decoded {
  VoteSlot slot{};
  bool is_mirrored{};
};

bool has_checksum(std::string_view bytes) {
  core::ByteReader checksum(bytes.substr(bytes.size() - 4));
  return checksum.fixed32() == core::crc32c(bytes.substr(0, bytes.size() - 4));
}

std::optional<Decoded> decode(std::string_view bytes) {
  if (bytes.size() < mirrored_bytes || !bytes.starts_with(vote_magic) ||
      !has_checksum(bytes.substr(0, vote_bytes))) {
    return std::nullopt;
  }
  core::ByteReader reader(bytes.substr(vote_magic.size()));
  Decoded decoded;
  decoded.slot.number = reader.fixed64();
  decoded.slot.vote.term = Term{reader.fixed64()};
  decoded.slot.vote.voted_for = MemberId{reader.fixed64()};
  decoded.is_mirrored = bytes.substr(vote_bytes).starts_with(mirrored_magic) &&
                        has_checksum(bytes.substr(0, mirrored_bytes));
  return decoded;
}

bool is_blank(std::string_view bytes) {
  return !bytes.empty() && bytes.find_first_not_of('\0') == std::string_view::npos;
}

}  // namespace

std::string encode_vote_slot(const VoteSlot& slot) {
  core::ByteWriter writer;
  writer.raw(vote_magic);
  writer.fixed64(slot.number);
  writer.fixed64(slot.vote.term.get());
  writer.fixed64(slot.vote.voted_for.get());
  writer.fixed32(core::crc32c(writer.bytes()));
  writer.raw(mirrored_magic);
  writer.fixed32(core::crc32c(writer.bytes()));
  auto bytes = std::move(writer).take();
  bytes.resize(vote_slot_bytes);
  return bytes;
}

Result<VoteScan> scan_votes(const std::array<std::string_view, vote_slot_count>& slots) {
  const std::array decoded{decode(slots[0]), decode(slots[1])};
  if (!decoded[0].has_value() && !decoded[1].has_value()) {
    return fail(Errc::invalid_argument, "neither of its two copies is readable");
  }
  if (decoded[0].has_value() && decoded[1].has_value()) {
    const std::size_t newest = decoded[1]->slot.number > decoded[0]->slot.number ? 1 : 0;
    const bool is_mirrored = decoded[0]->is_mirrored && decoded[1]->is_mirrored &&
                             decoded[0]->slot.number == decoded[1]->slot.number;
    return VoteScan{
        .newest = decoded[newest]->slot, .newest_at = newest, .is_mirrored = is_mirrored};
  }
  const std::size_t good = decoded[0].has_value() ? 0 : 1;
  const std::size_t bad = 1 - good;
  const auto where = "the copy at offset " + std::to_string(bad * vote_slot_bytes);
  VoteScan scan{.newest = decoded[good]->slot, .newest_at = good};
  // A file of an earlier version in which nothing was ever saved.
  if (scan.newest.number == 0 && is_blank(slots[bad])) {
    return scan;
  }
  if (!decoded[good]->is_mirrored) {
    return fail(Errc::invalid_argument,
                where + " is damaged, and an earlier version wrote the vote to one copy only");
  }
  scan.damage = where + " is damaged or was not written completely";
  return scan;
}

}  // namespace tenure::server::raft
