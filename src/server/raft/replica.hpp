#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include <tenure/error.hpp>

#include "server/raft/entry.hpp"
#include "server/raft/log_window.hpp"
#include "server/raft/message.hpp"

struct shim;
struct shim_event;
struct shim_message;
struct shim_update;

namespace tenure::server::raft {

enum class Role : std::uint8_t { follower, candidate, leader };

// Actions of a replica: what follows from its events.

/// ENSURES: durable before any later action is carried out.
struct SaveVote {
  Term term{};
  MemberId voted_for{};
};

/// Disk operation: replaces the log from `first` on by these entries.
struct WriteEntries {
  Index first{};
  std::vector<Entry> entries{};
};

/// Disk operation: replaces the whole log by a snapshot. Its state is restored later.
struct WriteSnapshot {
  Snapshot snapshot{};
};

struct SendMessage {
  MemberId peer{};
  Message message{};
};

/// Sends the newest snapshot on disk as InstallSnapshot to a peer that is too far behind. Recurs
/// while one is on its way.
struct SendSnapshot {
  MemberId peer{};
  Term term{};
  Index index{};  ///< Last entry of that snapshot.
};

/// A committed entry. Indexes come in order and without gaps.
struct ApplyEntry {
  Index index{};
  Entry entry{};
};

/// The snapshot of a finished WriteSnapshot becomes the state.
struct RestoreState {
  Snapshot snapshot{};
};

struct ChangeRole {
  Role role = Role::follower;
  Term term{};
  Index last{};  ///< Last entry of the log at that moment.
};

/// The newest configuration in the log, committed or not, takes effect.
struct ChangeMembers {
  std::vector<Member> members{};
  Index index{};  ///< Index of its entry.
};

/// The replica cannot continue.
struct Fail {
  std::string why{};
};

using Action = std::variant<SaveVote, WriteEntries, WriteSnapshot, SendMessage, SendSnapshot,
                            ApplyEntry, RestoreState, ChangeRole, ChangeMembers, Fail>;

struct ReplicaOptions {
  MemberId id{};
  std::uint32_t seed = 1;  ///< Seed of the random part of election timeouts.
  std::chrono::milliseconds election_timeout{1000};
  std::chrono::milliseconds heartbeat{100};
  std::uint32_t entries_in_flight_max = 4096;
  /// Number of entries kept behind a snapshot, for followers that are a little behind. A cluster
  /// needs more than `entries_in_flight_max` (R5), a member alone none.
  std::uint32_t trailing = 0;
};

/// Contents of the disk of a member that starts.
struct Recovered {
  Term term{};
  MemberId voted_for{};
  std::optional<SnapshotMark> snapshot{};  ///< Snapshot from which the state is restored.
  Index first{1};                          ///< Index of `entries`; at most the snapshot's + 1.
  std::vector<Entry> entries{};
};

/// Progress of a learner that catches up with the log.
enum class CatchUp : std::uint8_t { none, running, aborted, finished };

/// One member of a Raft group, as a pure state machine: libraft's core, the log in memory, and the
/// guards R1 to R11 against defects of libraft 0.22.1 (docs/explanation/raft_rules.md). Events are
/// calls; effects are actions, which the owner takes with next_action() and carries out in that
/// order after each call. Has no clock, disk or network. Deterministic: the same calls at the same
/// times give the same actions. Not thread safe.
///
/// Remove a guard only as an experiment in the simulation.
class Replica {
 public:
  explicit Replica(const ReplicaOptions& options);
  ~Replica();
  Replica(const Replica&) = delete;
  Replica& operator=(const Replica&) = delete;

  /// Time of all events until the next call, on a clock that never goes back.
  void set_time(std::chrono::milliseconds now) { now_ = now; }
  /// The oldest action that is not carried out; empty: there is none.
  [[nodiscard]] std::optional<Action> next_action();

  void start(Recovered recovered);
  void receive(MemberId sender, const Message& message);
  /// To be called at the time of deadline().
  void timeout();
  [[nodiscard]] std::chrono::milliseconds deadline() const;

  /// Appends one command entry and returns its index. `unavailable` if this member does not lead.
  [[nodiscard]] Result<Index> submit(Bytes payload);
  /// Appends a change of the members. R1: it is always alone.
  [[nodiscard]] Result<Index> change(const std::vector<Member>& members);

  /// Begins to watch the progress of a learner; `unavailable` if this member does not lead.
  [[nodiscard]] Result<void> catch_up(MemberId learner);
  [[nodiscard]] CatchUp catch_up_status(MemberId learner) const;
  /// Asks this voter to take over when it has the whole log. No entry can be submitted until it has
  /// done so, or until an election timeout has passed.
  [[nodiscard]] Result<void> transfer(MemberId to);

  /// The oldest `count` disk operations are durable. The disk does them in the order of their
  /// actions.
  void disk_done(std::size_t count);

  /// The mark of a snapshot taken now; empty: it would contain nothing new, or a snapshot cannot
  /// be taken at this moment.
  [[nodiscard]] std::optional<SnapshotMark> next_snapshot() const;
  /// A snapshot with a former next_snapshot() is durable: the log behind it is removed.
  void snapshot_taken(const SnapshotMark& mark);

  [[nodiscard]] Role role() const;
  [[nodiscard]] Term term() const;
  [[nodiscard]] MemberId leader() const;
  [[nodiscard]] Index commit() const;
  [[nodiscard]] Index applied() const noexcept { return applied_; }
  /// Last entry that this peer acknowledged. Empty if this member does not lead.
  [[nodiscard]] std::optional<Index> match(MemberId peer) const;
  /// Whether a change of the members is not finished yet.
  [[nodiscard]] bool is_changing() const;
  /// Whether the last entry of the log was made in this term. If this member leads: by itself.
  [[nodiscard]] bool has_entry_of_own_term() const { return term_at(log_.last()) == term(); }
  /// Whether an entry of this term is committed. Only then is it certain that no entry of an
  /// earlier term can still be committed by other members.
  [[nodiscard]] bool has_committed_own_term() const { return term_at(commit()) == term(); }
  /// Index of the last committed configuration.
  [[nodiscard]] Index configuration_index() const noexcept { return configuration_index_; }
  /// Index of the last configuration in the log.
  [[nodiscard]] Index newest_configuration_index() const noexcept {
    return Index{std::max(configuration_mark_.committed, configuration_mark_.uncommitted)};
  }
  [[nodiscard]] const LogWindow& log() const noexcept { return log_; }
  /// Newest snapshot, which the log continues; index 0: none.
  [[nodiscard]] const SnapshotMark& snapshot() const noexcept { return snapshot_; }

 private:
  struct DiskOperation {
    Index first{};                      ///< First entry of an append.
    Index last{};                       ///< Last entry of an append. Shrinks if the log is cut.
    std::optional<Snapshot> install{};  ///< Snapshot of an install; empty: an append.
    bool is_void = false;               ///< Overtaken: its completion is ignored.
  };

  /// Empty if the entry is neither in the log nor the last one of the snapshot.
  [[nodiscard]] std::optional<Term> term_at(Index index) const;

  /// Queues an action for next_action().
  void act(Action action);
  /// Queues a Fail: the core is in a state from which it cannot continue.
  void fail_fatally(std::string why);
  /// Gives one event to the core and queues the actions that follow. Returns the error of the core;
  /// 0: none. `given`: entries of the event, whose bytes the update may refer to. `received`:
  /// snapshot of the event.
  [[nodiscard]] int step(shim_event event, std::span<const Entry> given = {},
                         const Snapshot* received = nullptr);
  /// As step(), for an event that the core must accept.
  void must_step(const shim_event& event, const char* what);
  /// Appends one entry as the leader and returns its index.
  [[nodiscard]] Result<Index> submit_entry(Entry entry);
  /// Raises the term of a sole voter before the core sees it (R2).
  void lead_in_a_new_term_if_alone(Recovered& recovered);
  /// Reports durable entries to the core, unless the core knows or an install has overtaken them.
  void report_persisted(Index index);
  /// Makes a durable snapshot of the leader the base of the log.
  void finish_install(const Snapshot& snapshot);
  /// Gives a snapshot of this member to the core when the log up to it is durable, and cuts the
  /// log.
  void deliver_snapshot_mark();

  // Messages.
  /// Passes an AppendEntries on in parts that the core handles correctly (R1, R5, R11).
  void receive_append(MemberId sender, const AppendEntries& message);
  void give_append(MemberId sender, const AppendEntries& message, std::span<const Entry> entries);
  /// Whether a rejection is late and has to be ignored (R4).
  [[nodiscard]] bool is_stale(MemberId sender, const AppendResult& message) const;
  /// Gives a message of a peer to the core.
  void give(const shim_message& flat, std::span<const Entry> entries, const Snapshot* snapshot);
  /// Converts a message of the core to an action.
  void send(const shim_message& flat);
  [[nodiscard]] AppendResult result_of(const shim_message& flat) const;
  /// Sends the held-back request to take over when its recipient has the whole log (R10).
  void send_timeout_now();
  /// Sends an AppendEntries with its entries from the log in memory.
  void send_entries(const shim_message& flat);

  // Updates: the actions that follow from a step.
  void process(const shim_update& update, std::span<const Entry> given, const Snapshot* received);
  /// Appends entries of an update to the log in memory, and queues their write.
  void append(const shim_update& update, std::span<const Entry> given);
  /// Begins the install of a received snapshot, and voids the writes before it.
  void install(const shim_update& update, const Snapshot& received);
  /// Queues all entries that are committed and not applied.
  void apply_committed();
  /// Applies a committed configuration, which is a step of the core of its own.
  void apply_change(Index index, const Entry& entry);
  /// Queues a ChangeMembers if the newest configuration has changed.
  void notice_members();

  struct Destroy {
    void operator()(shim* core) const;
  };

  ReplicaOptions options_;
  /// Time of the present event.
  std::chrono::milliseconds now_{};
  /// Actions that the owner has not taken.
  std::deque<Action> actions_;
  /// Consensus core of libraft behind its C interface.
  std::unique_ptr<shim, Destroy> core_;
  /// Entries in memory, from which peers are served.
  LogWindow log_;
  /// Newest durable snapshot that the log continues.
  SnapshotMark snapshot_;
  /// Last applied entry. libraft's commit index of a follower can step back.
  Index applied_{};
  std::string configuration_;  ///< Configuration that was applied last.
  /// Index of that configuration.
  Index configuration_index_{};
  /// Role that the owner knows.
  Role role_ = Role::follower;
  /// Identity of the newest configuration, as the shim marks it.
  struct ConfigurationMark {
    const void* place = nullptr;
    std::uint64_t committed{};
    std::uint64_t uncommitted{};
    friend bool operator==(const ConfigurationMark&, const ConfigurationMark&) = default;
  };
  ConfigurationMark configuration_mark_;
  std::deque<DiskOperation> operations_;  ///< Disk operations that are not done.
  struct TakeOver {
    MemberId to{};
    TimeoutNow message;
  };
  std::optional<TakeOver> take_over_;  ///< Request that is not sent yet (R10).
  std::optional<SnapshotMark> taken_;  ///< Durable snapshot of a log that is not durable yet.
};

}  // namespace tenure::server::raft
