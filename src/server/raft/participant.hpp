#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <tenure/error.hpp>

#include "core/batch.hpp"
#include "core/limits.hpp"
#include "core/state_machine.hpp"
#include "server/raft/cluster_clock.hpp"
#include "server/raft/intake.hpp"
#include "server/raft/read_rounds.hpp"
#include "server/raft/replica.hpp"
#include "server/raft/surroundings.hpp"
#include "server/raft/versions.hpp"
#include "server/store.hpp"

namespace tenure::server::raft {

struct ParticipantOptions {
  MemberId id{};
  std::uint32_t seed = 1;  ///< Of the random part of election timeouts.
  /// Silence of a leader after which another is elected. A read that cannot be confirmed for so
  /// long is refused, and a transfer of the leadership given up.
  std::chrono::milliseconds election_timeout{300};
  /// A leader is never silent for longer. At most half of the election timeout.
  std::chrono::milliseconds heartbeat{50};
  /// Become part of the state when this member leads and they differ from it.
  core::Limits limits{};
  /// Cluster versions of this member. When it leads, it proposes the version that next_version()
  /// chooses.
  Versions versions = newest_versions();

  /// How much may wait for an answer. More is refused with `resource_exhausted`. Costs memory.
  Intake::Limits in_flight{};
  /// Reads that wait to be confirmed.
  std::size_t reads_max = 100'000;
  /// How much goes into one entry, which is one write. More makes a burst quicker and everybody's
  /// answer later.
  std::size_t batch_commands_max = 4096;
  std::size_t batch_bytes_max = std::size_t{1} << 20;
  /// Entries that may be on their way while the next fills.
  std::size_t entries_in_flight_max = 2;
  /// Entries that may be on their way to one peer, and those kept behind a snapshot for peers that
  /// are a little behind: more of these (R5).
  std::uint32_t peer_entries_max = 256;
  std::uint32_t trailing_entries = 1024;

  /// A snapshot is taken when the log behind the last one has more bytes than this and than
  /// `snapshot_factor` times the last snapshot. Bounds the log on disk and in memory, and the time
  /// of a start.
  std::size_t snapshot_log_bytes = std::size_t{64} << 20;
  std::size_t snapshot_factor = 2;
  std::string disk_name = "this member";  ///< For people, when it is full.
  /// How often to look for space on a full disk.
  std::chrono::milliseconds space_retry{1000};
  /// How long to wait after a snapshot that failed.
  std::chrono::milliseconds snapshot_retry{10'000};
};

/// What a participant begins with.
struct ParticipantState {
  core::StateMachine machine{};  ///< Restored from the snapshot, if there is one.
  std::size_t snapshot_bytes{};  ///< Of that snapshot.
  Recovered recovered{};
};

/// The store as one member of a group, alone or with others: all of it that decides. Proposals
/// become entries with a stamp of cluster time, committed entries become state, reads are
/// confirmed, members come and go, snapshots are planned. Events go in as calls with the time of
/// day as last argument, everything else comes out through Surroundings and through the callbacks
/// of Store. Deterministic: the same calls at the same times have the same effects; no clock,
/// thread, file or socket. Not thread safe, but for what intake() gives.
///
/// Callbacks and listeners come from inside any of these calls; they may call propose() of the
/// store in front of it, which is intake(), and nothing else.
class Participant final : private Effects {
 public:
  using Decision = Store::Decision;
  using Look = Store::Look;
  using Done = std::move_only_function<void(Result<void>)>;
  using SnapshotDone = std::move_only_function<void(Result<std::uint64_t>)>;

  Participant(const ParticipantOptions& options, Surroundings& surroundings,
              ParticipantState state);
  Participant(const Participant&) = delete;
  Participant& operator=(const Participant&) = delete;

  /// REQUIRES: before start(), and the listener outlives this.
  void listen(Listener& listener) { listeners_.push_back(&listener); }

  // Events.

  void start(Time now);
  void receive(MemberId sender, const Message& message, Time now);
  /// The oldest `count` disk operations are done.
  void disk_done(std::size_t count, Time now);
  /// The snapshot that was last asked for is durable; its bytes.
  void compacted(const Result<std::size_t>& bytes, Time now);
  /// The snapshot on disk, which a peer needs, cannot be read. The state in memory is whole: a new
  /// one is taken, and the peer gets that.
  void snapshot_unreadable(const Error& error, Time now);
  /// Surroundings::disk() may have changed.
  void disk_changed(Time now);
  /// To be called when deadline() has come; earlier is no harm.
  void timeout(Time now);
  [[nodiscard]] std::optional<Time> deadline() const;

  // What the store is asked. Each callback is called once.

  /// Where proposals wait. When a push says `queued_first`, drain() is to be called.
  [[nodiscard]] Intake& intake() noexcept { return intake_; }
  /// Makes one entry of all that waits. What comes while it is on its way waits for the next.
  void drain(Time now);
  /// To be called after drain(), when its entry is on its way: if more has come meanwhile, asks to
  /// be drained once more; otherwise the next push says `queued_first` again.
  void rest();
  void read(Look look, Time now);
  void peek(Look look, Time now);
  void take_snapshot(SnapshotDone done, Time now);
  void change_members(MemberChange change, Done done, Time now);
  void transfer_leadership(MemberId to, Done done, Time now);
  /// Refuses what waits and what comes, hands the leadership over if there is somebody to take it,
  /// takes a snapshot if one can be taken now; then `done`. Never longer than an election timeout
  /// and a snapshot.
  void stop(std::move_only_function<void()> done, Time now);
  /// Whatever still waits for anything ends with this. The last call.
  void give_up_everything(const Error& error);

  // Questions.

  [[nodiscard]] LogPosition position() const;
  [[nodiscard]] std::vector<MemberStatus> members() const;
  [[nodiscard]] const core::State& state() const noexcept { return machine_.state(); }
  /// Leads, and everything that was ever acknowledged is in the state.
  [[nodiscard]] bool is_ready() const noexcept { return is_ready_; }
  /// The group went on without this member: it takes no part any more.
  [[nodiscard]] bool is_dismissed() const;
  [[nodiscard]] const Replica& replica() const noexcept { return replica_; }

 private:
  /// One entry of our own on its way.
  struct Flight {
    Index index{};
    Term term{};
    core::Batch batch;
    std::vector<Decision> decisions;  ///< One for each command; may be empty.
    std::size_t proposals = 0;        ///< Those that came through the intake,
    std::size_t bytes = 0;            ///< and their weight there.
    Time proposed;
  };

  /// How many bytes the log takes at present: everything is let in, or what is left is rationed.
  struct Room {
    std::size_t for_all;      ///< For commands that only keep or give back.
    std::size_t for_growing;  ///< For those that make the state larger.
  };

  /// A change of the members under way, and what it waits for.
  struct Change {
    enum class Phase : std::uint8_t {
      /// For an entry of our own term to be committed, for the end of the last change, and for the
      /// voter that it made (R8).
      waiting,
      handing_over,  ///< We are the one to go; somebody else has to do it.
      adding,        ///< The stand-by is in the log, not committed.
      catching_up,   ///< It gets the log.
      promoting,     ///< Its vote is in the log, and it has to say that it knows.
      removing,      ///< The shorter list is in the log, not committed.
    };
    MemberChange what;
    Done done;
    Phase phase = Phase::waiting;
    Index index{};  ///< Of the entry that the phase waits for.
    Time until;     ///< For how long to wait for others that may be away.
  };

  struct Transfer {
    MemberId to{};
    Done done;
    Time until;
    bool is_over = false;  ///< We lead no more. Told when the event is dealt with.
  };

  /// A member that was removed and is told so for a while.
  struct Leaving {
    Member member;
    Index index{};
    Time until;
    Time tell_at;
  };

  struct SnapshotWish {
    Index wanted{};
    SnapshotDone done;
  };

  // Effects, called by the replica: participant_effects.cpp
  std::chrono::milliseconds now() override;
  void save_vote(Term term, MemberId voted_for) override;
  void append(Index first, const std::vector<Entry>& entries) override;
  void install(const Snapshot& snapshot) override;
  void send(MemberId peer, Message message) override;
  void send_snapshot(MemberId peer, Term term) override;
  void apply(Index index, const Entry& entry) override;
  void restore(const Snapshot& snapshot) override;
  void role_changed(Role role) override;
  void members_changed(const std::vector<Member>& members) override;
  void fatal(const std::string& why) override;

  // Every event begins with arrive() and ends with settle(): participant.cpp
  void arrive(Time now);
  void settle();
  void begin_to_lead();
  void begin_own_term();
  void adopt_limits();
  /// As far as this member knows; 0: nobody.
  [[nodiscard]] MemberId leader() const;
  void notice_leader();
  void tell_role();
  void receive_own(MemberId sender, const Message& message);
  [[nodiscard]] std::optional<Time> tick_at() const;
  void tick();
  [[nodiscard]] bool is_alone() const;
  [[nodiscard]] bool has_replica_timer() const;
  [[nodiscard]] Error not_leading() const;

  void begin_last_snapshot();
  void check_stop();
  void end_stop();

  // Batches: participant_batches.cpp
  void resume_draining();
  [[nodiscard]] bool may_submit() const;
  [[nodiscard]] bool is_space_known() const;
  /// Makes one entry of all that waits, if anything does.
  bool submit_gathered();
  [[nodiscard]] Flight gather();
  [[nodiscard]] Room room() const;
  [[nodiscard]] bool admit(const Proposal& proposal, Room& room) const;
  void refuse(Proposal proposal, Error error);
  void submit(Flight flight);
  void give_up(Flight flight, const Error& error);
  void give_up_flights(const Error& error);
  void propose_own(core::Command command);
  void apply_own(Flight flight);
  void apply_foreign(const Entry& entry);
  void tell_applied(const core::Applied& applied);

  // Reads: participant_reads.cpp
  void look(Look look);
  void ask_round();
  void answer_probe(MemberId sender, const Probe& probe);
  void confirm_reads();
  void refuse_reads(std::vector<Look> looks, const Error& error);

  // Members and the leadership: participant_members.cpp, participant_changes.cpp
  [[nodiscard]] const Member* find(MemberId id) const;
  [[nodiscard]] std::size_t voters() const;
  [[nodiscard]] bool may_change(const MemberChange& change) const;
  [[nodiscard]] std::string why_no_change() const;
  [[nodiscard]] Result<void> check(const AddMember& change) const;
  [[nodiscard]] Result<void> check(const RemoveMember& change) const;
  void advance_change();
  void begin_change();
  void begin_adding(const AddMember& adding);
  void begin_removing(const RemoveMember& removing);
  void begin_catching_up();
  void watch_catching_up();
  void promote();
  void submit_members(const std::vector<Member>& members, Change::Phase phase);
  void end_change(Result<void> result);
  void begin_transfer(MemberId to, Done done);
  [[nodiscard]] MemberId best_successor() const;
  [[nodiscard]] bool was_heard_lately(MemberId member) const;
  void doubt(MemberId sender, const Message& message);
  void mend_forgetful(MemberId member, Index has, Index acknowledged);
  void end_transfer(Result<void> result);
  void check_transfer();
  void apply_members(Index index, const std::vector<Member>& members);
  void receive_dismissal(const Dismissal& dismissal);
  void report_dismissal(Index index);
  void tell_the_leaving();
  void tell_stranger(MemberId sender, const Message& message);
  void publish_members();

  // The cluster version: participant_version.cpp
  void adopt_version();
  void submit_version();
  void version_decided(const Result<Decided>& decided);
  void version_applied(core::ClusterVersion before, Index index);
  [[nodiscard]] std::optional<Versions> versions_of(MemberId member) const;
  /// Whether the member runs a program that cannot read what this member writes.
  [[nodiscard]] bool is_too_old(MemberId member) const;
  /// The same, and reports it once.
  [[nodiscard]] bool must_not_read(MemberId member);
  [[nodiscard]] std::string complaint_about_version(MemberId member) const;

  // Snapshots: participant_snapshots.cpp
  void request_snapshot(SnapshotDone done);
  void cut_log();
  void compact_if_due();
  [[nodiscard]] bool is_compaction_due() const;
  void grant_wishes();
  void begin_compaction(SnapshotMark mark);

  const ParticipantOptions options_;
  Surroundings& surroundings_;
  std::vector<Listener*> listeners_;
  Time now_;
  core::StateMachine machine_;
  std::optional<Recovered> recovered_;  ///< Until the start.
  Replica replica_;
  ClusterClock clock_;
  /// Leads, and this was the last entry when that began: the no-op of the new term, or one that was
  /// known to be committed. When it is applied, so is everything that was ever acknowledged.
  std::optional<Index> past_;
  bool is_ready_ = false;  ///< Leads, and the past is applied.
  MemberId told_leader_{};
  bool is_draining_paused_ = false;
  std::size_t writing_ = 0;  ///< Disk operations that are not done.
  std::deque<Flight> flights_;
  std::vector<core::Command> own_commands_;  ///< To go into the next entry.
  std::optional<Time> own_again_at_;         ///< There was no room for them.
  bool is_tick_on_its_way_ = false;
  Intake intake_;
  ReadRounds reads_;

  std::vector<Member> members_;    ///< The newest list in our log, committed or not.
  std::vector<Member> committed_;  ///< The newest that is committed.
  std::vector<Member> published_;  ///< Who the transport knows.
  std::map<MemberId, Time> heard_;
  struct FreshVoter {
    MemberId id{};
    Index index{};
  };
  std::optional<FreshVoter> fresh_voter_;
  std::optional<Change> change_;
  std::optional<Transfer> transfer_;
  /// Members that say to have less of the log than they once acknowledged, and since when; or when
  /// to do something about it again.
  std::map<MemberId, Time> doubts_;
  /// The cluster version to propose, in an entry of its own.
  std::optional<core::ClusterVersion> version_to_set_;
  /// That entry is not applied yet. Nothing is submitted meanwhile, so that every entry is written
  /// in the version of the state to which it is applied.
  bool is_version_on_its_way_ = false;
  std::optional<Time> version_again_at_;  ///< Earliest time of the next proposal.
  std::set<MemberId> too_old_;            ///< Reported.
  std::vector<Leaving> leaving_;
  Index dismissed_at_{};  ///< As others told us.
  bool was_member_ = false;
  struct SnapshotSent {
    Index index{};
    Time at;
  };
  std::map<MemberId, SnapshotSent> snapshots_sent_;
  bool is_stopping_ = false;
  struct Stopping {
    std::move_only_function<void()> done;
    Time until;
    bool is_handed_over = false;  ///< Only the snapshot is left.
  };
  std::optional<Stopping> stopping_;  ///< Until it is done.

  std::size_t log_bytes_ = 0;  ///< Of commands applied since the last snapshot.
  std::size_t snapshot_bytes_ = 0;
  struct Compaction {
    SnapshotMark mark;
    std::size_t log_bytes = 0;
    Time began;
  };
  std::optional<Compaction> compaction_;
  Index last_compacted_{};
  Index cut_before_{};                    ///< The log on disk begins here, or is told to.
  std::optional<Time> compact_again_at_;  ///< After one that failed.
  std::vector<SnapshotWish> wishes_;
  std::optional<Index> unreadable_;  ///< A snapshot that is being replaced.
};

}  // namespace tenure::server::raft
