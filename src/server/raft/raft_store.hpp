#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include <tenure/error.hpp>

#include "core/state_machine.hpp"
#include "server/raft/environment.hpp"
#include "server/raft/group_member.hpp"
#include "server/raft/listeners.hpp"
#include "server/raft/proposal_batcher.hpp"
#include "server/raft/read_index.hpp"
#include "server/raft/replicated_state.hpp"
#include "server/raft/snapshot_scheduler.hpp"
#include "server/raft/versions.hpp"
#include "server/store/store.hpp"

namespace tenure::server::raft {

/// State with which a store starts.
struct RaftStoreState {
  core::StateMachine machine{};  ///< Restored from the snapshot, if there is one.
  std::size_t snapshot_bytes{};  ///< Size of that snapshot.
  Recovered recovered{};
};

/// The replicated store as one member of a Raft group, or alone: the coordinator of the objects
/// that decide. GroupMember replicates the log and changes the members; ProposalBatcher makes
/// entries of commands; ReplicatedState applies them; ReadIndex confirms reads; VersionAgreement
/// and SnapshotScheduler choose the cluster version and the time of snapshots. The objects return
/// decisions and do not know each other; the store passes them on.
///
/// Events are calls with the present time as last argument; effects go to the Environment and to
/// the callbacks of the calls. Deterministic: the same calls at the same times have the same
/// effects; no clock, thread, file or socket. Not thread safe, except what proposal_queue()
/// returns.
///
/// Callbacks and listeners are called from inside any of these functions. They may push to the
/// proposal queue (Store::propose()) and call nothing else.
class RaftStore {
 public:
  using OnRead = Store::OnRead;
  using Done = GroupMember::Done;
  using SnapshotDone = SnapshotScheduler::Done;

  /// REQUIRES: the environment outlives the store.
  RaftStore(const RaftStoreOptions& options, Environment& environment, RaftStoreState state);
  RaftStore(const RaftStore&) = delete;
  RaftStore& operator=(const RaftStore&) = delete;

  /// REQUIRES: before start(), and the listener outlives this.
  void listen(Listener& listener) { listeners_.add(listener); }

  // Events.

  void start(Time now);
  void receive(MemberId sender, const Message& message, Time now);
  /// The oldest `count` disk operations are done.
  void disk_done(std::size_t count, Time now);
  /// The last snapshot of Environment::compact() is durable, with this size, or failed.
  void compacted(const Result<std::size_t>& bytes, Time now);
  /// The snapshot on disk, which a peer needs, cannot be read. The state in memory is whole: a new
  /// snapshot is taken, and the peer gets that.
  void snapshot_unreadable(const Error& error, Time now);
  /// Environment::disk() may have changed.
  void disk_changed(Time now);
  /// To be called at the time of deadline(). An earlier call does no harm.
  void timeout(Time now);
  [[nodiscard]] std::optional<Time> deadline() const;

  // Requests. Each callback is called once.

  /// Queue of proposals. A push that returns `queued_first` has to be followed by drain().
  [[nodiscard]] ProposalQueue& proposal_queue() noexcept { return batcher_.queue(); }
  /// Makes one entry of all waiting commands, or waits until the entry in flight allows it.
  void drain(Time now);
  /// To be called after drain(), when its effects are on their way. If more commands have arrived,
  /// schedules another drain(); otherwise the next push returns `queued_first`.
  void go_idle();
  void read(OnRead on_read, Time now);
  void peek(OnRead on_read, Time now);
  void take_snapshot(SnapshotDone done, Time now);
  void change_members(MemberChange change, Done done, Time now);
  void transfer_leadership(MemberId to, Done done, Time now);
  /// Fails waiting and new requests, transfers the leadership if there is a successor, takes a
  /// snapshot if one can begin now, and calls `done`. Takes at most an election timeout and a
  /// snapshot.
  void stop(std::move_only_function<void()> done, Time now);
  /// Fails all waiting requests. The last call.
  void give_up_everything(const Error& error);

  // Queries.

  [[nodiscard]] LogPosition position() const;
  [[nodiscard]] std::vector<MemberStatus> members() const { return group_.statuses(); }
  [[nodiscard]] const core::State& state() const noexcept { return state_.get(); }
  /// Whether this member leads and its state has everything that was ever acknowledged.
  [[nodiscard]] bool is_ready() const noexcept { return is_ready_; }
  /// Whether the group continued without this member.
  [[nodiscard]] bool is_removed() const { return group_.members().is_removed(); }
  [[nodiscard]] const Replica& replica() const noexcept { return group_.replica(); }

 private:
  struct Shutdown {
    std::move_only_function<void()> done;
    Time until;
    bool is_handed_over = false;  ///< Only the snapshot is left.
  };

  /// Every event begins with this.
  void begin_event(Time now);
  /// Every event ends with this: decides what the event has made possible.
  void settle();
  void carry_out_actions();
  void carry_out(const ApplyEntry& action);
  void carry_out(const RestoreState& action);
  void carry_out(const ChangeRole& action);
  void carry_out(const SendSnapshot& action);

  /// Begins to serve as the leader: starts the clock, and proposes what differs from the options.
  void become_ready();
  /// Fails everything that only a leader can finish.
  void cease_to_lead();
  /// Proposes the limits of the options if the state has others.
  void adopt_limits();
  /// Proposes a no-op, unless the log has an entry of this term or will get one.
  void begin_own_term();
  /// Notifies the listeners if another member began to lead.
  void notify_new_leader();
  void set_known_leader(MemberId leader);
  void notify_role() { listeners_.role_changed(position()); }
  [[nodiscard]] Error not_leading() const;

  /// Whether the next entry may be made now. True for a member that does not lead: it refuses
  /// commands at once.
  [[nodiscard]] bool may_submit() const;
  /// Makes one entry of all waiting commands; false: there are none.
  bool submit_gathered();
  /// Stamps an entry, appends it to the log and keeps it until it is applied.
  void submit(ProposedEntry entry);
  /// Adds a command of the store itself to the next entry.
  void propose_own(core::Command command);
  /// Time at which the next Tick is due; empty: none is, or one is in flight.
  [[nodiscard]] std::optional<Time> expiry_at() const;
  /// Proposes a Tick if a lease has expired in cluster time.
  void expire_leases();

  /// Answers the reads that a quorum has confirmed, and begins the next round.
  void confirm_reads();
  /// Answers a read with the present state.
  void answer_read(OnRead on_read);
  static void refuse(std::vector<OnRead> reads, const Error& error);

  /// Chooses the next cluster version, if the members agree on one.
  void choose_version();
  /// Submits SetClusterVersion as the only command of its entry.
  void submit_version();
  void version_decided(const Result<Decided>& decided);
  /// Reacts to a change of the cluster version by an applied entry.
  void version_applied(core::ClusterVersion before, Index index);

  /// Begins a snapshot when one is due and the state is at the end of the committed log.
  void begin_snapshot_if_due();
  /// Removes the part of the log on disk that the log in memory no longer has.
  void cut_log();

  /// Second part of the shutdown, after the transfer of the leadership.
  void request_last_snapshot();
  void check_shutdown();
  void end_shutdown();

  const RaftStoreOptions options_;
  Environment& environment_;
  Listeners listeners_;
  /// Time of the present event; it never goes back.
  Time now_;
  std::optional<Recovered> recovered_;  ///< Until start().
  GroupMember group_;
  ReplicatedState state_;
  ProposalBatcher batcher_;
  ReadIndex reads_;
  VersionAgreement version_;
  SnapshotScheduler snapshots_;
  /// Last entry of the log when this member began to lead: the no-op of the new term, or an entry
  /// that was known to be committed. When it is applied, so is everything that was ever
  /// acknowledged.
  std::optional<Index> term_start_;
  bool is_ready_ = false;            ///< Leads, and `term_start_` is applied.
  MemberId known_leader_{};          ///< Leader that the listeners know.
  bool is_expiry_proposed_ = false;  ///< A Tick is not applied yet.
  bool is_stopping_ = false;
  std::optional<Shutdown> shutdown_;  ///< Until it is done.
};

}  // namespace tenure::server::raft
