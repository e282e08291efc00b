#include "server/raft/node_loader.hpp"

#include <algorithm>
#include <utility>

#include "core/batch.hpp"
#include "core/snapshot.hpp"
#include "core/version.hpp"

namespace tenure::server::raft {
namespace {

std::unexpected<Error> too_new(const std::string& what) {
  return fail(
      Errc::unsupported,
      "a newer program wrote this folder (" + what +
          "). Start the newer program. To downgrade, first lower the cluster version with it "
          "(cluster.version_max)");
}

// Checks the entries behind the snapshot, which are applied; earlier ones are never read.
Result<void> check_versions(const Recovered& recovered) {
  const auto applied = recovered.snapshot.has_value() ? recovered.snapshot->index : Index{};
  auto index = recovered.first;
  for (const auto& entry : recovered.entries) {
    const bool is_read = entry.type == EntryType::command && index > applied;
    const auto version = is_read ? core::version_of_batch(*entry.payload) : core::ClusterVersion{};
    if (version > core::newest_version) {
      return too_new("entry " + std::to_string(index.get()) + " of the log has cluster version " +
                     std::to_string(version.get()) + ", and this program supports at most " +
                     std::to_string(core::newest_version.get()));
    }
    index = next(index);
  }
  return {};
}

Result<core::StateMachine> restored_machine(const std::optional<Snapshot>& snapshot) {
  if (!snapshot.has_value()) {
    return core::StateMachine();
  }
  auto state = core::decode(*snapshot->body);
  if (!state && state.error() == Errc::unsupported) {
    return too_new(state.error().detail);
  }
  if (!state) {
    return fail(Errc::invalid_argument, "the snapshot of entry " +
                                            std::to_string(snapshot->mark.index.get()) +
                                            " cannot be restored: " + state.error().detail);
  }
  return core::StateMachine(std::move(*state));
}

// Checks the bootstrap options before anything is written.
Result<void> check_beginning(const NodeOptions& options) {
  const auto& initial_members = options.initial_members;
  if (options.bootstrap_mode == BootstrapMode::join) {
    return initial_members.empty()
               ? Result<void>()
               : fail(Errc::invalid_argument, "a joining member has no initial members");
  }
  if (initial_members.empty()) {
    return {};
  }
  if (initial_members.size() == 2) {
    return fail(Errc::invalid_argument,
                "a cluster has at least three members; a single node has none");
  }
  if (options.identity.cluster == ClusterId{} && initial_members.size() > 1) {
    return fail(Errc::invalid_argument, "the members of a new cluster need the same cluster id");
  }
  if (std::ranges::find(initial_members, options.identity.member, &Member::id) ==
      initial_members.end()) {
    return fail(Errc::invalid_argument, "this is member " +
                                            std::to_string(options.identity.member.get()) +
                                            ", which is not an initial member of the cluster");
  }
  if (encode_members(initial_members).empty()) {
    return fail(Errc::invalid_argument, "invalid member list: ids and addresses must be unique");
  }
  return {};
}

// A directory without log and snapshot. A joining member may have saved a term already.
Result<void> check_new(const LoadedNode& loaded, const NodeOptions& options) {
  const auto term = loaded.recovered.term;
  const bool is_joining = options.bootstrap_mode == BootstrapMode::join;
  // An interrupted bootstrap leaves term 1. A joining member that has saved a term has log files,
  // too, though perhaps without entries.
  if (is_joining ? term > Term{} && !loaded.had_log : term > Term{1}) {
    return fail(
        Errc::invalid_argument,
        "the folder " + loaded.folder.path().string() +
            " was in use, but its log and its snapshot are missing. Restore it from a backup, "
            "or name an empty folder to start with no data.");
  }
  return {};
}

// Entry 1 is the configuration, identical on every initial member (bootstrap).
Result<void> bootstrap(LoadedNode& loaded, const NodeOptions& options) {
  if (auto checked = check_new(loaded, options); !checked) {
    return checked;
  }
  if (options.bootstrap_mode == BootstrapMode::join) {
    return {};
  }
  auto members = options.initial_members;
  if (members.empty()) {
    members = {{.id = loaded.folder.member()}};
  }
  auto configuration = encode_members(members);
  auto& recovered = loaded.recovered;
  recovered.term = Term{1};
  if (auto saved = loaded.votes.save({.term = recovered.term}); !saved) {
    return saved;
  }
  recovered.first = Index{1};
  recovered.entries = {{.term = recovered.term,
                        .type = EntryType::change,
                        .payload = std::make_shared<const std::string>(std::move(configuration))}};
  // The vote file was written first, so that no log exists with a term that it lacks.
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
                "the file " + (folder / "vote").string() + " has term " +
                    std::to_string(recovered.term.get()) + ", but the log has entries of term " +
                    std::to_string(newest.get()) +
                    ": it is damaged or from another backup. Restore the folder from one backup.");
  }
  return {};
}

// A single node stays one (R2); a joining member has no configuration yet.
GroupKind group_kind_of(const Recovered& recovered) {
  std::string newest =
      recovered.snapshot.has_value() ? recovered.snapshot->configuration : std::string();
  for (const auto& entry : recovered.entries) {
    if (entry.type == EntryType::change) {
      newest = *entry.payload;
    }
  }
  return decode_members(newest).size() == 1 ? GroupKind::single : GroupKind::cluster;
}

bool has_log(const std::filesystem::path& folder) {
  return std::ranges::any_of(std::filesystem::directory_iterator(folder), [](const auto& file) {
    return file.path().filename().string().starts_with("log-");
  });
}

JournalOptions journal_options(const NodeOptions& options, const Folder& folder) {
  return {.folder = folder.path(),
          .cluster = folder.cluster(),
          .segment_bytes = options.segment_bytes,
          .retry = options.space_retry,
          .report = options.report};
}

Result<LoadedNode> load(const NodeOptions& options) {
  const auto origin = options.bootstrap_mode == BootstrapMode::found ? origin_of_nothing : Origin{};
  // The lock of the folder comes first: all other files belong to its owner.
  auto folder = Folder::open(options.folder, options.identity, origin);
  if (!folder) {
    return std::unexpected(std::move(folder).error());
  }
  auto votes = VoteFile::open(folder->path() / "vote", options.report);
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
  const bool had_log = has_log(folder->path());
  auto log = Journal::open(journal_options(options, *folder), mark);
  if (!log) {
    return std::unexpected(std::move(log).error());
  }
  LoadedNode loaded{.folder = std::move(*folder),
                    .votes = std::move(*votes),
                    .snapshot_file = std::move(snapshot_file),
                    .journal = std::move(log->journal),
                    .machine = std::move(*machine),
                    .recovered = {},
                    .had_log = had_log};
  loaded.recovered = {.term = loaded.votes.vote().term,
                      .voted_for = loaded.votes.vote().voted_for,
                      .snapshot = has_snapshot ? std::optional(mark) : std::nullopt,
                      .first = log->first,
                      .entries = std::move(log->entries)};
  return loaded;
}

}  // namespace

Result<LoadedNode> load_node(const NodeOptions& options) {
  std::error_code error;  // An unreadable directory is reported by load() below.
  if (!std::filesystem::exists(options.folder / "identity", error)) {
    if (auto checked = check_beginning(options); !checked) {
      return std::unexpected(std::move(checked).error());
    }
  }
  auto loaded = load(options);
  if (!loaded) {
    return std::unexpected(std::move(loaded).error());
  }
  const auto& recovered = loaded->recovered;
  auto checked = recovered.entries.empty() && !recovered.snapshot.has_value()
                     ? bootstrap(*loaded, options)
                     : check_term(recovered, options.folder);
  if (checked) {
    checked = check_versions(recovered);
  }
  if (!checked) {
    return std::unexpected(std::move(checked).error());
  }
  loaded->group_kind = group_kind_of(recovered);
  return loaded;
}

}  // namespace tenure::server::raft
