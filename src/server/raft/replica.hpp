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

/// All that a replica does to the world. Calls come from inside the replica's own functions, in an
/// order that is part of the protocol; none of them may call the replica back.
class Effects {
 public:
  virtual ~Effects() = default;

  /// A clock that never goes back. The replica knows no other.
  [[nodiscard]] virtual std::chrono::milliseconds now() = 0;

  /// ENSURES: durable on return, before anything that follows leaves this member.
  virtual void save_vote(Term term, MemberId voted_for) = 0;

  // Disk operations: done one after the other in the order of these calls. When the oldest ones are
  // durable, Replica::disk_done() is told how many.

  /// Puts these in place of everything from `first` on.
  virtual void append(Index first, const std::vector<Entry>& entries) = 0;
  /// Puts a snapshot in place of the whole log. Not yet to be restored.
  virtual void install(const Snapshot& snapshot) = 0;

  virtual void send(MemberId peer, Message message) = 0;
  /// Sends the newest one on disk as InstallSnapshot of this term, to a peer that is too far
  /// behind. May come again and again while one is on its way.
  virtual void send_snapshot(MemberId peer, Term term) = 0;

  /// Committed, in order, without gaps.
  virtual void apply(Index index, const Entry& entry) = 0;
  /// The state is now this one.
  virtual void restore(const Snapshot& snapshot) = 0;
  virtual void role_changed(Role role) = 0;
  /// The newest list in the log, committed or not: it counts from now on.
  virtual void members_changed(const std::vector<Member>& /*members*/) {}

  /// This member cannot go on. The real one ends the process; a simulation takes a note.
  virtual void fatal(const std::string& why) = 0;
};

struct ReplicaOptions {
  MemberId id{};
  std::uint32_t seed = 1;  ///< Of the random part of election timeouts.
  std::chrono::milliseconds election_timeout{1000};
  std::chrono::milliseconds heartbeat{100};
  std::uint32_t entries_in_flight_max = 4096;
  /// Entries kept behind a snapshot, for followers that are a little behind. For a cluster more
  /// than `entries_in_flight_max` (R5); a member alone needs none.
  std::uint32_t trailing = 0;
};

/// What a member finds on its disk when it starts.
struct Recovered {
  Term term{};
  MemberId voted_for{};
  std::optional<SnapshotMark> snapshot{};  ///< The state is restored from it already.
  Index first{1};                          ///< Of `entries`; at most the snapshot's index + 1.
  std::vector<Entry> entries{};
};

/// How far a stand-by is that was told to catch up.
enum class CatchUp : std::uint8_t { none, running, aborted, finished };

/// One member of a Raft group: libraft's pure core, with the log in memory beside it and our guards
/// around it. Events go in as calls, everything else comes out through Effects. Deterministic: the
/// same calls at the same times have the same effects. Not thread safe.
///
/// R1 to R11 in the comments are defects of libraft 0.22.1 that fault simulation found, each with
/// what keeps it from doing harm. Taking one away is an experiment for the simulator only.
class Replica {
 public:
  Replica(const ReplicaOptions& options, Effects& effects);
  ~Replica();
  Replica(const Replica&) = delete;
  Replica& operator=(const Replica&) = delete;

  void start(Recovered recovered);
  void receive(MemberId sender, const Message& message);
  /// To be called when deadline() has come.
  void timeout();
  [[nodiscard]] std::chrono::milliseconds deadline() const;

  /// Appends one command entry; its index. `unavailable` if this member does not lead.
  [[nodiscard]] Result<Index> submit(Bytes payload);
  /// Appends a change of the members. R1: it is always alone.
  [[nodiscard]] Result<Index> change(const std::vector<Member>& members);

  /// Begins to watch how a stand-by gets on; `unavailable` if this member does not lead.
  [[nodiscard]] Result<void> catch_up(MemberId standby);
  [[nodiscard]] CatchUp catch_up_status(MemberId standby) const;
  /// Asks this voter to take over, when it has the whole log. Nothing can be submitted until it
  /// has, or until an election timeout has passed.
  [[nodiscard]] Result<void> transfer(MemberId to);

  /// The oldest `count` disk operations are durable.
  void disk_done(std::size_t count);

  /// What a snapshot taken now would stand for; nothing if there would be nothing new in it, or if
  /// this is not a good moment.
  [[nodiscard]] std::optional<SnapshotMark> next_snapshot() const;
  /// A snapshot that was next_snapshot() some time ago is durable: the log behind it goes.
  void snapshot_taken(const SnapshotMark& mark);

  [[nodiscard]] Role role() const;
  [[nodiscard]] Term term() const;
  [[nodiscard]] MemberId leader() const;
  [[nodiscard]] Index commit() const;
  [[nodiscard]] Index applied() const noexcept { return applied_; }
  /// What this peer is known to have. Nothing if this member does not lead.
  [[nodiscard]] std::optional<Index> match(MemberId peer) const;
  /// Whether a change of the members is not finished yet.
  [[nodiscard]] bool is_changing() const;
  /// Whether the last entry of the log was made in this term. If this member leads: by itself.
  [[nodiscard]] bool has_entry_of_own_term() const { return term_at(log_.last()) == term(); }
  /// Whether one of them is committed. Only then is it certain, for a leader, that nothing of an
  /// earlier one can still be committed by others.
  [[nodiscard]] bool has_committed_own_term() const { return term_at(commit()) == term(); }
  /// The last change of the members that is committed.
  [[nodiscard]] Index configuration_index() const noexcept { return configuration_index_; }
  /// The last one in the log.
  [[nodiscard]] Index newest_configuration_index() const noexcept {
    return Index{std::max(configuration_mark_.committed, configuration_mark_.uncommitted)};
  }
  [[nodiscard]] const LogWindow& log() const noexcept { return log_; }
  /// The newest snapshot that the log stands on; index 0: none.
  [[nodiscard]] const SnapshotMark& snapshot() const noexcept { return snapshot_; }

 private:
  struct DiskOperation {
    Index first{};                      ///< Of an append.
    Index last{};                       ///< What it makes durable. Shrinks if the log is cut.
    std::optional<Snapshot> install{};  ///< Given: this is no append.
    bool is_void = false;               ///< Overtaken: its end means nothing.
  };

  /// Nothing if it is neither in the log nor the last of the snapshot.
  [[nodiscard]] std::optional<Term> term_at(Index index) const;

  // Each way in: replica.cpp
  [[nodiscard]] int step(shim_event event, std::span<const Entry> given = {},
                         const Snapshot* received = nullptr);
  void must_step(const shim_event& event, const char* what);
  [[nodiscard]] Result<Index> submit_entry(Entry entry);
  void lead_in_a_new_term_if_alone(Recovered& recovered);
  void report_persisted(Index index);
  void finish_install(const Snapshot& snapshot);
  void deliver_snapshot_mark();

  // Messages: replica_messages.cpp
  void receive_append(MemberId sender, const AppendEntries& message);
  void give_append(MemberId sender, const AppendEntries& message, std::span<const Entry> entries);
  [[nodiscard]] bool is_stale(MemberId sender, const AppendResult& message) const;
  void give(const shim_message& flat, std::span<const Entry> entries, const Snapshot* snapshot);
  void send(const shim_message& flat);
  [[nodiscard]] AppendResult result_of(const shim_message& flat) const;
  void tell_successor();
  void send_entries(const shim_message& flat);

  // What follows from a step, in the order that the protocol wants: replica_updates.cpp
  void process(const shim_update& update, std::span<const Entry> given, const Snapshot* received);
  void append(const shim_update& update, std::span<const Entry> given);
  void install(const shim_update& update, const Snapshot& received);
  void apply_committed();
  void apply_change(Index index, const Entry& entry);
  void notice_members();

  struct Destroy {
    void operator()(shim* core) const;
  };

  ReplicaOptions options_;
  Effects& effects_;
  std::unique_ptr<shim, Destroy> core_;
  LogWindow log_;
  SnapshotMark snapshot_;
  /// Ours, because the library's commit index of a follower can step back.
  Index applied_{};
  std::string configuration_;  ///< The last one applied.
  Index configuration_index_{};
  Role role_ = Role::follower;
  /// Of the newest configuration, as the seam marks it.
  struct ConfigurationMark {
    const void* place = nullptr;
    std::uint64_t committed{};
    std::uint64_t uncommitted{};
    friend bool operator==(const ConfigurationMark&, const ConfigurationMark&) = default;
  };
  ConfigurationMark configuration_mark_;
  std::deque<DiskOperation> operations_;
  struct TakeOver {
    MemberId to{};
    TimeoutNow message;
  };
  std::optional<TakeOver> take_over_;  ///< Not sent yet: R10.
  std::optional<SnapshotMark> taken_;  ///< Durable, but our log is not yet: the library waits.
};

}  // namespace tenure::server::raft
