#include <utility>

#include "core/snapshot.hpp"
#include "server/raft/node.hpp"
#include "server/raft/node_loaded.hpp"

namespace tenure::server::raft {
namespace {

Result<core::StateMachine> restored_machine(const std::optional<Snapshot>& snapshot) {
  if (!snapshot.has_value()) {
    return core::StateMachine();
  }
  auto state = core::decode(*snapshot->body);
  if (!state) {
    return fail(Errc::invalid_argument, "the snapshot of entry " +
                                            std::to_string(snapshot->mark.index.get()) +
                                            " cannot be restored: " + state.error().detail);
  }
  return core::StateMachine(std::move(*state));
}

// The first entry of a group of one names its member.
Result<void> bootstrap(Node::Loaded& loaded) {
  auto& recovered = loaded.recovered;
  if (recovered.term > Term{1}) {
    return fail(Errc::invalid_argument,
                "the folder " + loaded.folder.path().string() +
                    " was in use, but its log and its snapshot are gone. Restore it from a backup, "
                    "or name an empty folder to begin anew.");
  }
  recovered.term = Term{1};
  if (auto saved = loaded.votes.save({.term = recovered.term}); !saved) {
    return saved;
  }
  recovered.first = Index{1};
  recovered.entries = {{.term = recovered.term,
                        .type = EntryType::change,
                        .payload = std::make_shared<const std::string>(
                            encode_members({{.id = loaded.folder.member()}}))}};
  loaded.journal->append(recovered.first, recovered.entries);
  loaded.journal->sync();
  return {};
}

Result<void> check_term(const Recovered& recovered, const std::filesystem::path& folder) {
  Term newest = recovered.snapshot.has_value() ? recovered.snapshot->term : Term{};
  for (const auto& entry : recovered.entries) {
    newest = std::max(newest, entry.term);
  }
  if (recovered.term < newest) {
    return fail(Errc::invalid_argument,
                "the file " + (folder / "vote").string() + " says term " +
                    std::to_string(recovered.term.get()) + ", but the log has entries of term " +
                    std::to_string(newest.get()) +
                    ": it is damaged or from another time. Restore the folder from one backup.");
  }
  return {};
}

JournalOptions journal_options(const NodeOptions& options, const Folder& folder) {
  return {.folder = folder.path(),
          .cluster = folder.cluster(),
          .segment_bytes = options.segment_bytes,
          .retry = options.space_retry,
          .report = options.report};
}

Result<Node::Loaded> load(const NodeOptions& options) {
  auto folder = Folder::open(options.folder, options.identity);
  if (!folder) {
    return std::unexpected(std::move(folder).error());
  }
  auto votes = VoteFile::open(folder->path() / "vote");
  if (!votes) {
    return std::unexpected(std::move(votes).error());
  }
  auto snapshot_file = std::make_unique<SnapshotFile>(folder->path() / "snapshot");
  auto snapshot = snapshot_file->read();
  if (!snapshot) {
    return std::unexpected(std::move(snapshot).error());
  }
  auto machine = restored_machine(*snapshot);
  if (!machine) {
    return std::unexpected(std::move(machine).error());
  }
  const bool has_snapshot = snapshot->has_value();
  const auto mark = has_snapshot ? (*snapshot)->mark : SnapshotMark{};
  auto log = Journal::open(journal_options(options, *folder), mark);
  if (!log) {
    return std::unexpected(std::move(log).error());
  }
  Node::Loaded loaded{.folder = std::move(*folder),
                      .votes = std::move(*votes),
                      .snapshot_file = std::move(snapshot_file),
                      .journal = std::move(log->journal),
                      .machine = std::move(*machine),
                      .recovered = {}};
  loaded.recovered = {.term = loaded.votes.vote().term,
                      .voted_for = loaded.votes.vote().voted_for,
                      .snapshot = has_snapshot ? std::optional(mark) : std::nullopt,
                      .first = log->first,
                      .entries = std::move(log->entries)};
  return loaded;
}

}  // namespace

Result<std::unique_ptr<Node>> Node::open(NodeOptions options) {
  auto loaded = load(options);
  if (!loaded) {
    return std::unexpected(std::move(loaded).error());
  }
  const auto& recovered = loaded->recovered;
  auto checked = recovered.entries.empty() && !recovered.snapshot.has_value()
                     ? bootstrap(*loaded)
                     : check_term(recovered, options.folder);
  if (!checked) {
    return std::unexpected(std::move(checked).error());
  }
  return std::make_unique<Node>(std::move(options), std::move(*loaded));
}

}  // namespace tenure::server::raft
