#include "server/raft/vote_file.hpp"

#include <array>
#include <string>
#include <string_view>
#include <utility>

namespace tenure::server::raft {
namespace {

constexpr std::string_view remedy =
    " This member could vote twice in one term, so it does not start. Restore the folder from a "
    "backup, or remove this member from the cluster and let it join again with an empty folder.";

// Both slots exist before the first save, so that a vote never fails for lack of space.
Result<void> create(const std::filesystem::path& path) {
  const auto slot = encode_vote_slot({});
  return replace_file(path, slot, slot);
}

// A slot that the disk cannot read counts as damaged: the other one may still be good.
std::string read_slot(const File& file, std::size_t slot) {
  std::string bytes(vote_slot_bytes, '\0');
  return file.read_at(slot * vote_slot_bytes, bytes) ? bytes : std::string();
}

}  // namespace

Result<VoteFile> VoteFile::open(const std::filesystem::path& path, const Report& report) {
  if (!std::filesystem::exists(path)) {
    if (auto created = create(path); !created) {
      return std::unexpected(std::move(created).error());
    }
  }
  auto file = File::open(path, File::Mode::change);
  if (!file) {
    return std::unexpected(std::move(file).error());
  }
  const std::array slots{read_slot(*file, 0), read_slot(*file, 1)};
  const auto scan = scan_votes({slots[0], slots[1]});
  if (!scan) {
    return fail(Errc::invalid_argument, "the vote file " + path.string() + " is damaged: " +
                                            scan.error().detail + "." + std::string(remedy));
  }
  VoteFile votes(std::move(*file));
  votes.newest_ = scan->newest;
  if (scan->is_mirrored) {
    return votes;
  }
  if (!scan->damage.empty() && report) {
    report(log::Level::warning, "vote_file_repaired",
           {{"file", path.string()}, {"error", scan->damage}});
  }
  // The only valid copy is rewritten last: a crash in between must not damage both.
  auto restored = votes.write_slot(1 - scan->newest_at);
  if (restored) {
    restored = votes.write_slot(scan->newest_at);
  }
  if (!restored) {
    return std::unexpected(std::move(restored).error());
  }
  return votes;
}

Result<void> VoteFile::save(Vote vote) {
  newest_ = {.number = newest_.number + 1, .vote = vote};
  auto written = write_slot(0);
  if (written) {
    written = write_slot(1);
  }
  return written;
}

Result<void> VoteFile::write_slot(std::size_t slot) {
  if (auto written = file_.write_at(slot * vote_slot_bytes, encode_vote_slot(newest_)); !written) {
    return written;
  }
  return file_.sync_content();
}

}  // namespace tenure::server::raft
