#include "server/raft/seed.hpp"

#include <algorithm>
#include <system_error>
#include <utility>

#include "core/snapshot.hpp"
#include "server/raft/compaction.hpp"
#include "server/raft/journal.hpp"
#include "server/raft/snapshot_file.hpp"
#include "server/raft/vote_file.hpp"

namespace tenure::server::raft {
namespace {

// What a new cluster begins with: as if the list of its members had been the first entry.
constexpr Index seed_index{1};
constexpr Term seed_term{1};

Result<core::StateMachine> restored(const std::optional<Snapshot>& snapshot) {
  if (!snapshot.has_value()) {
    return core::StateMachine();
  }
  auto state = core::decode(*snapshot->body);
  if (!state) {
    return fail(Errc::invalid_argument, "the snapshot cannot be restored: " + state.error().detail);
  }
  return core::StateMachine(std::move(*state));
}

Result<void> check(const Seed& seed) {
  const bool is_listed =
      std::ranges::find(seed.members, seed.identity.member, &Member::id) != seed.members.end();
  if (seed.identity.cluster == ClusterId{} || !is_listed || seed.members.size() < 3 ||
      encode_members(seed.members).empty()) {
    return fail(Errc::invalid_argument,
                "a new cluster needs an id and at least three members, each with an id and "
                "addresses of its own, and this one among them");
  }
  if (auto state = core::decode(seed.body); !state) {
    return fail(Errc::invalid_argument, "the state cannot be restored: " + state.error().detail);
  }
  std::error_code error;
  const bool is_there = std::filesystem::exists(seed.folder, error);
  if (error || (is_there && !std::filesystem::is_empty(seed.folder, error)) || error) {
    return fail(Errc::invalid_argument, "the folder " + seed.folder.string() + " is not empty");
  }
  return {};
}

}  // namespace

Result<std::string> read_state(const std::filesystem::path& path) {
  if (!std::filesystem::exists(path / "identity")) {
    return fail(Errc::invalid_argument, "the folder " + path.string() + " is none of a member");
  }
  auto folder = Folder::open(path, {});
  if (!folder) {
    return std::unexpected(std::move(folder).error());
  }
  auto snapshot = SnapshotFile(path / "snapshot").read();
  if (!snapshot) {
    return std::unexpected(std::move(snapshot).error());
  }
  auto machine = restored(*snapshot);
  if (!machine) {
    return std::unexpected(std::move(machine).error());
  }
  const auto mark = snapshot->has_value() ? (*snapshot)->mark : SnapshotMark{};
  auto log = Journal::open(
      {.folder = path, .cluster = folder->cluster(), .report = [](Severity, const std::string&) {}},
      mark);
  if (!log) {
    return std::unexpected(std::move(log).error());
  }
  Index index = log->first;
  for (const auto& entry : log->entries) {
    if (index > mark.index) {
      if (auto replayed = replay(*machine, entry); !replayed) {
        return std::unexpected(std::move(replayed).error());
      }
    }
    index = next(index);
  }
  return core::encode(machine->state());
}

// The snapshot comes last: without it the folder is one whose log is gone, and refused.
Result<void> plant(const Seed& seed) {
  if (auto checked = check(seed); !checked) {
    return checked;
  }
  auto folder = Folder::open(seed.folder, seed.identity);
  if (!folder) {
    return std::unexpected(std::move(folder).error());
  }
  auto votes = VoteFile::open(seed.folder / "vote");
  if (!votes) {
    return std::unexpected(std::move(votes).error());
  }
  if (auto saved = votes->save({.term = Term{seed_term.get() + 1}}); !saved) {
    return saved;
  }
  const SnapshotMark mark{.index = seed_index,
                          .term = seed_term,
                          .configuration_index = seed_index,
                          .configuration = encode_members(seed.members)};
  return SnapshotFile(seed.folder / "snapshot").write(mark, seed.body);
}

}  // namespace tenure::server::raft
