#include "server/raft/seed.hpp"

#include <algorithm>
#include <limits>
#include <system_error>
#include <utility>
#include <vector>

#include "core/bytes.hpp"
#include "core/restore.hpp"
#include "core/saved_state.hpp"
#include "core/snapshot.hpp"
#include "server/raft/compaction.hpp"
#include "server/raft/file.hpp"
#include "server/raft/journal.hpp"
#include "server/raft/snapshot_file.hpp"
#include "server/raft/vote_file.hpp"

namespace tenure::server::raft {
namespace {

// Snapshot position of a new cluster, as if its configuration had been an early entry. Not index 1:
// libraft never sends a snapshot of index 1, and a member that joins later would wait forever.
constexpr Index seed_index{2};
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

// Size and checksum of the body. Larger than origin_of_nothing, because a state is never empty.
Origin origin_of(std::string_view body) {
  return Origin{(std::uint64_t{body.size()} << 32) | core::crc32c(body)};
}

// A single node has no member list.
Result<void> check_members(const Seed& seed) {
  if (seed.members.empty()) {
    return {};
  }
  const bool is_listed =
      std::ranges::find(seed.members, seed.identity.member, &Member::id) != seed.members.end();
  if (seed.identity.cluster == ClusterId{} || !is_listed || seed.members.size() == 2 ||
      encode_members(seed.members).empty()) {
    return fail(Errc::invalid_argument,
                "a new cluster needs a cluster id and at least three members with unique ids and "
                "addresses, this one included; a single node needs none");
  }
  return {};
}

Result<void> check_folder(const Seed& seed) {
  std::error_code error;
  const bool is_there = std::filesystem::exists(seed.folder, error);
  if (error || (is_there && !std::filesystem::is_empty(seed.folder, error)) || error) {
    return fail(Errc::invalid_argument, "the folder " + seed.folder.string() + " is not empty");
  }
  return {};
}

// State of the new cluster. The commands between the backup and the end of its cluster are unknown,
// so all counters continue beyond any value that it can have reached.
struct Continued {
  std::string body{};
  core::ClusterTime grants_after{};
};

core::ClusterTime longest_ttl(const Seed& seed, const core::State& state) {
  const auto known = core::longest_ttl(state);
  const auto possible =
      seed.source == SeedSource::current ? known : std::max(known, state.limits.ttl_max);
  return std::max(seed.longest_ttl.value_or(possible), core::ClusterTime{});
}

Result<Continued> continued(const Seed& seed) {
  auto state = core::decode(seed.body);
  if (!state) {
    return fail(Errc::invalid_argument, "the state cannot be restored: " + state.error().detail);
  }
  constexpr auto last = std::numeric_limits<std::uint64_t>::max() - seed_step;
  if (state->revision.get() > last || state->leases.last_id().get() > last) {
    return fail(Errc::invalid_argument,
                "the state cannot be restored: its revisions are exhausted");
  }
  state->revision = core::Revision{state->revision.get() + seed_step};
  state->leases.set_last_id(core::LeaseId{state->leases.last_id().get() + seed_step});
  // A watch from an earlier revision gets an error instead of a silent gap.
  state->events.compact(state->revision);
  Continued result;
  if (seed.source == SeedSource::backup || seed.leases == SeedLeases::drop) {
    result.grants_after = longest_ttl(seed, *state);
  }
  if (seed.leases == SeedLeases::drop) {
    core::drop_leases(*state);
  }
  if (result.grants_after > core::ClusterTime{}) {
    core::begin_restoration(*state, result.grants_after);
  }
  result.body = core::encode(*state);
  return result;
}

Result<std::string> read_saved(const std::filesystem::path& path) {
  const auto file = File::open(path, File::Mode::read);
  if (!file) {
    return std::unexpected(file.error());
  }
  const auto bytes = file->read_all();
  if (!bytes) {
    return std::unexpected(bytes.error());
  }
  auto saved = core::read_saved_state(*bytes);
  if (!saved) {
    return fail(Errc::invalid_argument, "the file " + path.string() + ": " + saved.error().detail);
  }
  return std::move(saved->state);
}

}  // namespace

Result<std::string> read_state(const std::filesystem::path& path) {
  if (std::filesystem::is_regular_file(path)) {
    return read_saved(path);
  }
  if (!std::filesystem::exists(path / "identity")) {
    return fail(Errc::invalid_argument,
                "the folder " + path.string() + " is not a data directory of a member");
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
  auto log =
      Journal::open({.folder = path, .cluster = folder->cluster(), .report = ignore_event}, mark);
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

// The snapshot is written last: an interrupted seed leaves a directory without log and snapshot,
// which a start refuses.
Result<SeedResult> write_seed(const Seed& seed) {
  auto checked = check_members(seed);
  if (checked) {
    checked = check_folder(seed);
  }
  if (!checked) {
    return std::unexpected(std::move(checked).error());
  }
  const auto state = continued(seed);
  if (!state) {
    return std::unexpected(state.error());
  }
  auto folder = Folder::open(seed.folder, seed.identity, origin_of(state->body));
  if (!folder) {
    return std::unexpected(std::move(folder).error());
  }
  auto votes = VoteFile::open(seed.folder / "vote");
  if (!votes) {
    return std::unexpected(std::move(votes).error());
  }
  if (auto saved = votes->save({.term = Term{seed_term.get() + 1}}); !saved) {
    return std::unexpected(std::move(saved).error());
  }
  const auto members =
      seed.members.empty() ? std::vector<Member>{{.id = folder->member()}} : seed.members;
  const SnapshotMark mark{.index = seed_index,
                          .term = seed_term,
                          .configuration_index = seed_index,
                          .configuration = encode_members(members)};
  if (auto written = SnapshotFile(seed.folder / "snapshot").write(mark, state->body); !written) {
    return std::unexpected(std::move(written).error());
  }
  return SeedResult{.cluster = folder->cluster(), .grants_after = state->grants_after};
}

}  // namespace tenure::server::raft
