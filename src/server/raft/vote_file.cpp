#include "server/raft/vote_file.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "core/bytes.hpp"

namespace tenure::server::raft {
namespace {

// Each in a sector of its own, also on disks with large ones.
constexpr std::size_t slot_distance = 4096;
constexpr std::string_view vote_magic = "TENUREV1";
constexpr std::size_t slot_bytes = 8 + 3 * 8 + 4;

struct Slot {
  std::uint64_t number{};
  Vote vote{};
};

std::string encode(const Slot& slot) {
  core::ByteWriter writer;
  writer.raw(vote_magic);
  writer.fixed64(slot.number);
  writer.fixed64(slot.vote.term.get());
  writer.fixed64(slot.vote.voted_for.get());
  writer.fixed32(core::crc32c(writer.bytes()));
  return std::move(writer).take();
}

std::optional<Slot> decode(std::string_view bytes) {
  if (bytes.size() < slot_bytes || !bytes.starts_with(vote_magic)) {
    return std::nullopt;
  }
  bytes = bytes.substr(0, slot_bytes);
  core::ByteReader reader(bytes.substr(vote_magic.size()));
  const auto number = reader.fixed64();
  const Term term{reader.fixed64()};
  const MemberId voted_for{reader.fixed64()};
  if (reader.fixed32() != core::crc32c(bytes.substr(0, slot_bytes - 4))) {
    return std::nullopt;
  }
  return Slot{.number = number, .vote = {.term = term, .voted_for = voted_for}};
}

}  // namespace

Result<VoteFile> VoteFile::open(const std::filesystem::path& path) {
  const bool is_new = !std::filesystem::exists(path);
  if (is_new) {
    // Both slots exist before the first is needed: a vote never fails for lack of space.
    auto first = encode(Slot{});
    first.resize(2 * slot_distance);
    if (auto made = replace_file(path, first); !made) {
      return std::unexpected(std::move(made).error());
    }
  }
  auto file = File::open(path, File::Mode::change);
  if (!file) {
    return std::unexpected(std::move(file).error());
  }
  const auto bytes = file->read_all();
  if (!bytes) {
    return std::unexpected(bytes.error());
  }
  VoteFile votes(std::move(*file));
  bool is_good = false;
  for (std::size_t at = 0; at < bytes->size(); at += slot_distance) {
    const auto slot = decode(std::string_view(*bytes).substr(at));
    if (slot.has_value() && slot->number >= votes.writes_) {
      votes.writes_ = slot->number;
      votes.vote_ = slot->vote;
      is_good = true;
    }
  }
  if (!is_good) {
    return fail(Errc::invalid_argument,
                "the file " + path.string() +
                    " has no readable term and vote, at offset 0 nor at offset 4096. Without them "
                    "this member could vote twice. Restore the folder from a backup, or remove "
                    "this member and let it join anew.");
  }
  return votes;
}

Result<void> VoteFile::save(Vote vote) {
  ++writes_;
  vote_ = vote;
  const auto slot = encode({.number = writes_, .vote = vote});
  if (auto written = file_.write_at((writes_ % 2) * slot_distance, slot); !written) {
    return written;
  }
  return file_.sync_content();
}

}  // namespace tenure::server::raft
