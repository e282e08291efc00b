#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <tenure/error.hpp>

#include "server/raft/environment.hpp"
#include "server/raft/leadership_transfer.hpp"
#include "server/raft/lost_entry_detector.hpp"
#include "server/raft/membership.hpp"
#include "server/raft/membership_change.hpp"
#include "server/raft/raft_store_options.hpp"
#include "server/raft/replica.hpp"
#include "server/raft/time.hpp"
#include "server/raft/versions.hpp"
#include "server/store/store.hpp"

namespace tenure::server::raft {

/// This member of the Raft group: the replica, and around it the membership, its changes, the
/// leadership transfer and the peers that cannot read the log. Carries out the actions of the
/// replica that concern disk and network, and passes on those that concern the state. Knows no
/// commands and no clients. Deterministic, as Replica. Not thread safe.
class GroupMember {
 public:
  using Done = std::move_only_function<void(Result<void>)>;
  /// An action for the owner.
  using StateAction = std::variant<ApplyEntry, RestoreState, ChangeRole, SendSnapshot>;

  /// REQUIRES: the environment outlives this.
  GroupMember(const RaftStoreOptions& options, Environment& environment);

  /// Time of all calls until the next one; never goes back.
  void set_time(Time now);
  /// Carries out actions of the replica up to the next one for the owner, which is returned; empty:
  /// all are carried out. To be called until it is empty after every event and settle().
  [[nodiscard]] std::optional<StateAction> next_action();

  // Events.

  void start(Recovered recovered);
  void receive(MemberId sender, const Message& message);
  /// Sends a removal notice to a removed peer that requests votes. After the actions of receive().
  void answer_removed_peer(MemberId sender, const Message& message);
  /// The oldest `count` disk operations are done. finish_writes() comes first, so that the owner
  /// can submit an entry in between.
  void finish_writes(std::size_t count) { writing_ -= count; }
  void disk_done(std::size_t count) { replica_.disk_done(count); }
  /// Elections and heartbeats.
  void timeout();
  /// Sends the due removal notices. After the actions of timeout().
  void send_removal_notices();
  [[nodiscard]] std::optional<Time> deadline() const;
  /// Advances the membership change and ends a transfer that is over. True: an entry of this
  /// leader's own term has to be committed first.
  [[nodiscard]] bool settle();

  // Leadership and log.

  [[nodiscard]] Result<Index> submit(Bytes payload) { return replica_.submit(std::move(payload)); }
  void snapshot_taken(const SnapshotMark& mark) { replica_.snapshot_taken(mark); }
  /// A new leader waits for the first answers of its peers.
  void begin_to_lead() { members_.hear_all(now_); }
  /// Ends everything that only a leader does.
  void cease_to_lead();
  /// From now on this member does not stand for election.
  void stop_elections() { may_be_elected_ = false; }
  [[nodiscard]] bool leads() const { return replica_.role() == Role::leader; }
  /// The leader as far as this member knows; 0: none.
  [[nodiscard]] MemberId leader() const;
  /// Number of unfinished disk operations.
  [[nodiscard]] std::size_t writing() const noexcept { return writing_; }

  /// Asks all other voters to acknowledge a round of reads.
  void send_round(std::uint64_t round);

  // Members. The callbacks are called once.

  [[nodiscard]] bool is_changing() const { return change_.is_active() || replica_.is_changing(); }
  void change_members(MemberChange change, Done done);
  void fail_change(const Error& error) { change_.end(std::unexpected(error)); }

  [[nodiscard]] bool is_transferring() const noexcept { return transfer_.is_active(); }
  /// 0: to the voter that has most of the log.
  void transfer_leadership(MemberId to, Done done);
  /// Whether there is a voter to which transfer_leadership(0) would go.
  [[nodiscard]] bool has_successor() const { return successor() != MemberId{}; }
  /// Calls `done` with the result of the transfer in progress, too. REQUIRES: is_transferring().
  void await_transfer(Done done) { transfer_.also_notify(std::move(done)); }
  void fail_transfer(const Error& error) { transfer_.fail(error); }

  /// Whether the message shows that its sender has lost entries that it had acknowledged. Reports
  /// that.
  [[nodiscard]] bool shows_lost_entries(MemberId sender, const Message& message);
  /// Transfers the leadership, so that a member gets the entries that it has lost.
  void repair_lost_entries();

  // Cluster version.

  /// Peers that cannot read entries of this version get none.
  void set_cluster_version(core::ClusterVersion version) { version_ = version; }
  [[nodiscard]] std::optional<Versions> versions_of(MemberId member) const;
  [[nodiscard]] std::vector<MemberVersions> all_versions() const;

  // Queries.

  [[nodiscard]] const Replica& replica() const noexcept { return replica_; }
  [[nodiscard]] const Membership& members() const noexcept { return members_; }
  [[nodiscard]] std::vector<MemberStatus> statuses() const;
  /// Position of the log and its leader; the rest is the owner's to fill in.
  [[nodiscard]] LogPosition position() const;
  /// Error of a request that only the leader can serve. Names the leader, if known.
  [[nodiscard]] Error not_leading() const;

 private:
  // Each returns the action if it is for the owner.
  [[nodiscard]] std::optional<StateAction> carry_out(SaveVote action);
  [[nodiscard]] std::optional<StateAction> carry_out(const WriteEntries& action);
  [[nodiscard]] std::optional<StateAction> carry_out(const WriteSnapshot& action);
  [[nodiscard]] std::optional<StateAction> carry_out(SendMessage action);
  [[nodiscard]] std::optional<StateAction> carry_out(const ChangeMembers& action);
  [[nodiscard]] std::optional<StateAction> carry_out(const Fail& action);
  [[nodiscard]] std::optional<StateAction> carry_out(ApplyEntry action);
  [[nodiscard]] std::optional<StateAction> carry_out(RestoreState action);
  [[nodiscard]] std::optional<StateAction> carry_out(ChangeRole action) { return action; }
  [[nodiscard]] std::optional<StateAction> carry_out(SendSnapshot action);

  /// Records a committed configuration, and reports the removal of this member.
  void commit_members(const std::string& configuration, Index index);
  /// Passes the peers to the network if they have changed.
  void publish_peers();
  void report_removal(Index index);
  /// Whether the member's program cannot read the entries of the cluster. Reports that once.
  [[nodiscard]] bool must_not_read(MemberId member);
  /// Whether elections or heartbeats are due at the deadline of the replica.
  [[nodiscard]] bool has_replica_timer() const;
  [[nodiscard]] MembershipChange::Group group() const;
  /// Carries out steps of the membership change. True: as settle().
  [[nodiscard]] bool advance_change();
  void begin_transfer(MemberId to, Done done);
  /// Best other voter to lead; 0: there is none. Members that lost entries are not candidates.
  [[nodiscard]] MemberId successor() const;
  /// Whether a message of the member arrived within the last election timeout.
  [[nodiscard]] bool was_heard_lately(MemberId member) const;

  const RaftStoreOptions options_;
  Environment& environment_;
  /// Time of the present event.
  Time now_;
  Replica replica_;
  Membership members_;
  MembershipChange change_;
  LeadershipTransfer transfer_;
  LostEntryDetector lost_entries_;
  core::ClusterVersion version_{};
  std::set<MemberId> too_old_;  ///< Members that are reported as unable to read entries.
  /// Disk operations that have begun and not finished.
  std::size_t writing_ = 0;
  /// False during the shutdown.
  bool may_be_elected_ = true;
};

}  // namespace tenure::server::raft
