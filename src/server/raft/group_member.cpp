#include "server/raft/group_member.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "server/raft/versions.hpp"

namespace tenure::server::raft {
namespace {

// libraft may report a deadline in the past repeatedly; the pause prevents a busy loop.
constexpr std::chrono::milliseconds shortest_pause{1};

ReplicaOptions replica_options(const RaftStoreOptions& options) {
  // The random part of the timeouts comes from the seed, so a simulation is repeatable.
  return {.id = options.id,
          .seed = options.seed,
          .election_timeout = options.election_timeout,
          .heartbeat = options.heartbeat,
          .entries_in_flight_max = options.peer_entries_max,
          .trailing = options.trailing_entries};
}

}  // namespace

GroupMember::GroupMember(const RaftStoreOptions& options, Environment& environment)
    : options_(options),
      environment_(environment),
      replica_(replica_options(options)),
      members_({.self = options.id,
                .notice_for = 4 * options.election_timeout,
                .notice_every = options.heartbeat}),
      change_({.self = options.id, .timeout = 10 * options.election_timeout}),
      // libraft gives up after an election timeout, when it sends the next heartbeats.
      transfer_(options.election_timeout + 2 * options.heartbeat),
      lost_entries_({.confirm_after = 2 * options.election_timeout,
                     .repeat_after = 10 * options.election_timeout}) {}

void GroupMember::set_time(Time now) {
  now_ = now;
  replica_.set_time(std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()));
}

std::optional<GroupMember::StateAction> GroupMember::next_action() {
  while (auto action = replica_.next_action()) {
    auto rest = std::visit([this](auto& what) { return carry_out(std::move(what)); }, *action);
    if (rest.has_value()) {
      return rest;
    }
  }
  return std::nullopt;
}

std::optional<GroupMember::StateAction> GroupMember::carry_out(SaveVote action) {
  environment_.save_vote(action.term, action.voted_for);
  return std::nullopt;
}

std::optional<GroupMember::StateAction> GroupMember::carry_out(const WriteEntries& action) {
  ++writing_;
  environment_.append(action.first, action.entries);
  return std::nullopt;
}

std::optional<GroupMember::StateAction> GroupMember::carry_out(const WriteSnapshot& action) {
  ++writing_;
  environment_.install(action.snapshot);
  return std::nullopt;
}

std::optional<GroupMember::StateAction> GroupMember::carry_out(SendMessage action) {
  const auto* append = std::get_if<AppendEntries>(&action.message);
  if (append == nullptr || append->entries.empty() || !must_not_read(action.peer)) {
    environment_.send(action.peer, std::move(action.message));
  }
  return std::nullopt;
}

// A configuration takes effect as soon as it is in the log.
std::optional<GroupMember::StateAction> GroupMember::carry_out(const ChangeMembers& action) {
  members_.set_newest(action.members, action.index, now_);
  publish_peers();
  return std::nullopt;
}

std::optional<GroupMember::StateAction> GroupMember::carry_out(const Fail& action) {
  environment_.fatal(action.why);
  return std::nullopt;
}

std::optional<GroupMember::StateAction> GroupMember::carry_out(ApplyEntry action) {
  if (action.entry.type == EntryType::change) {
    commit_members(*action.entry.payload, action.index);
    return std::nullopt;
  }
  return action;
}

std::optional<GroupMember::StateAction> GroupMember::carry_out(RestoreState action) {
  commit_members(action.snapshot.mark.configuration, action.snapshot.mark.configuration_index);
  return action;
}

std::optional<GroupMember::StateAction> GroupMember::carry_out(SendSnapshot action) {
  return must_not_read(action.peer) ? std::nullopt : std::optional<StateAction>(action);
}

void GroupMember::start(Recovered recovered) {
  if (const auto& snapshot = recovered.snapshot; snapshot.has_value()) {
    commit_members(snapshot->configuration, snapshot->configuration_index);
  }
  replica_.start(std::move(recovered));
}

// A member that knows no newer term has not voted in one. If a quorum acknowledges a round of
// reads, no other leader was elected before, and none can have acknowledged anything. The answer of
// a member in an older term is as good as that of a follower.
void GroupMember::receive(MemberId sender, const Message& message) {
  members_.heard(sender, now_);
  if (const auto* probe = std::get_if<Probe>(&message)) {
    if (probe->term >= replica_.term()) {
      environment_.send(sender, ProbeResult{.term = probe->term, .round = probe->round});
    }
  } else if (const auto* removal_notice = std::get_if<RemovalNotice>(&message)) {
    if (members_.receive_notice(removal_notice->index)) {
      report_removal(removal_notice->index);
    }
  } else if (!std::holds_alternative<ProbeResult>(message)) {
    replica_.receive(sender, message);
  }
}

// A member that was down during its removal requests votes after its next start.
void GroupMember::answer_removed_peer(MemberId sender, const Message& message) {
  if (std::holds_alternative<RequestVote>(message) && members_.is_removed_peer(sender)) {
    environment_.send(sender, RemovalNotice{.index = replica_.configuration_index()});
  }
}

void GroupMember::timeout() {
  if (has_replica_timer() && now_ >= Time(replica_.deadline())) {
    replica_.timeout();
  }
}

// The network keeps its connection to a removed member as long as notices are sent.
void GroupMember::send_removal_notices() {
  for (const auto& notice : members_.take_due_notices(now_)) {
    if (leads()) {
      environment_.send(notice.to, RemovalNotice{.index = notice.removed_at});
    }
  }
  publish_peers();
}

std::optional<Time> GroupMember::deadline() const {
  std::optional<Time> earliest;
  if (has_replica_timer()) {
    earliest = std::max(Time(replica_.deadline()), now_ + shortest_pause);
  }
  keep_earlier(earliest, transfer_.deadline());
  keep_earlier(earliest, change_.deadline(now_));
  keep_earlier(earliest, members_.deadline());
  return earliest;
}

// A single node has no peers, so it needs no heartbeats or elections. A removed member must not
// start elections.
bool GroupMember::has_replica_timer() const {
  return leads() ? !members_.is_alone() : may_be_elected_ && !members_.is_removed();
}

bool GroupMember::settle() {
  transfer_.complete(now_);
  return advance_change();
}

// Each step makes the next one possible, except CommitOwnTerm, which takes time.
bool GroupMember::advance_change() {
  while (change_.is_active()) {
    const auto step = change_.next_step(group(), now_);
    if (!step.has_value()) {
      return false;
    }
    if (std::holds_alternative<MembershipChange::CommitOwnTerm>(*step)) {
      return true;
    }
    if (const auto* submission = std::get_if<MembershipChange::SubmitMembers>(&*step)) {
      change_.submitted(replica_.change(submission->members), now_);
    } else if (const auto* watch = std::get_if<MembershipChange::WatchLearner>(&*step)) {
      change_.catching_up(replica_.catch_up(watch->id));
    } else {
      begin_transfer(successor(), [this](Result<void> result) {
        if (!result) {
          change_.end(std::move(result));
        }
      });
    }
  }
  return false;
}

MembershipChange::Group GroupMember::group() const {
  const auto subject = change_.subject();
  const auto& fresh_voter = members_.fresh_voter();
  const auto match = [this](MemberId id) { return replica_.match(id).value_or(Index{}); };
  return {.members = members_,
          .applied = replica_.applied(),
          .last = replica_.log().last(),
          .has_committed_own_term = replica_.has_committed_own_term(),
          .is_changing = replica_.is_changing(),
          .is_transferring = transfer_.is_active(),
          .subject_match = match(subject),
          .fresh_voter_match = fresh_voter.has_value() ? match(fresh_voter->id) : Index{},
          .catch_up = replica_.catch_up_status(subject),
          .subject_versions = versions_of(subject),
          .version = version_};
}

void GroupMember::cease_to_lead() {
  too_old_.clear();
  change_.end(
      fail(Errc::unavailable, "this member lost the leadership; check the members before a retry"));
  transfer_.cease_to_lead();
}

// A removed member receives no messages, so its last leader would remain its leader forever.
MemberId GroupMember::leader() const {
  return members_.is_removed() && !leads() ? MemberId{} : replica_.leader();
}

void GroupMember::send_round(std::uint64_t round) {
  for (const auto& member : members_.newest()) {
    if (member.role == MemberRole::voter && member.id != options_.id) {
      environment_.send(member.id, Probe{.term = replica_.term(), .round = round});
    }
  }
}

void GroupMember::commit_members(const std::string& configuration, Index index) {
  if (members_.set_committed(decode_members(configuration), index, now_)) {
    report_removal(index);
  }
  publish_peers();
}

void GroupMember::publish_peers() {
  if (const auto peers = members_.changed_peers()) {
    environment_.set_members(*peers);
  }
}

void GroupMember::report_removal(Index index) {
  environment_.report(log::Level::warning, "removed_from_cluster", {{"index", index}});
}

// Changes of the members -------------------------------------------------------------------------

void GroupMember::change_members(MemberChange change, Done done) {
  if (members_.is_alone()) {
    done(fail(Errc::unsupported,
              "a single node cannot add members; stop it and seed a cluster of three "
              "from its state (tenured seed)"));
    return;
  }
  if (change_.is_active()) {
    done(fail(Errc::would_block, "another membership change is in progress"));
    return;
  }
  if (auto checked = MembershipChange::check(change, members_); !checked) {
    done(std::move(checked));
    return;
  }
  change_.begin(std::move(change), std::move(done), now_);
}

// Leadership transfer ----------------------------------------------------------------------------

void GroupMember::transfer_leadership(MemberId to, Done done) {
  if (transfer_.is_active()) {
    done(fail(Errc::would_block, "another leadership transfer is in progress"));
    return;
  }
  const auto chosen = to == MemberId{} ? successor() : to;
  if (chosen == MemberId{} || chosen == options_.id || !members_.is_voter(chosen)) {
    done(fail(Errc::invalid_argument,
              chosen == MemberId{}    ? "there is no other member that could lead"
              : chosen == options_.id ? "this member leads already"
                                      : "only a member that votes can lead"));
    return;
  }
  begin_transfer(chosen, std::move(done));
}

void GroupMember::begin_transfer(MemberId to, Done done) {
  if (auto begun = replica_.transfer(to); !begun) {
    done(std::move(begun));
    return;
  }
  transfer_.begin(to, std::move(done), now_);
}

MemberId GroupMember::successor() const {
  std::vector<TransferCandidate> candidates;
  for (const auto& member : members_.newest()) {
    const auto match = replica_.match(member.id);
    if (member.role == MemberRole::voter && member.id != options_.id && match.has_value() &&
        !lost_entries_.is_suspect(member.id)) {
      candidates.push_back(
          {.id = member.id, .was_heard_lately = was_heard_lately(member.id), .match = *match});
    }
  }
  return best_successor(candidates);
}

bool GroupMember::was_heard_lately(MemberId member) const {
  return members_.was_heard_within(options_.election_timeout, member, now_);
}

bool GroupMember::shows_lost_entries(MemberId sender, const Message& message) {
  const auto* result = std::get_if<AppendResult>(&message);
  if (result == nullptr || result->term != replica_.term() || !leads()) {
    return false;
  }
  const auto match = replica_.match(sender).value_or(Index{});
  if (!lost_entries_.observe(sender, *result, match, now_)) {
    return false;
  }
  environment_.report(
      log::Level::error, "member_lost_entries",
      {{"member", sender}, {"last_index", result->last}, {"acknowledged_index", match}});
  return true;
}

// libraft never goes back behind the index that a member once acknowledged, so this leader cannot
// send the lost entries. The next leader can: it begins by asking every member.
void GroupMember::repair_lost_entries() {
  const auto to = successor();
  if (!transfer_.is_active() && was_heard_lately(to)) {
    begin_transfer(to, [](const Result<void>& /*a failure is repeated*/) {});
  }
}

// Cluster version --------------------------------------------------------------------------------

std::optional<Versions> GroupMember::versions_of(MemberId member) const {
  return member == options_.id ? options_.versions : environment_.versions_of(member);
}

std::vector<MemberVersions> GroupMember::all_versions() const {
  std::vector<MemberVersions> all;
  all.reserve(members_.newest().size());
  for (const auto& member : members_.newest()) {
    all.push_back({.role = member.role, .announced = versions_of(member.id)});
  }
  return all;
}

bool GroupMember::must_not_read(MemberId member) {
  const auto versions = versions_of(member);
  if (!is_too_old(versions, version_)) {
    too_old_.erase(member);
    return false;
  }
  if (too_old_.insert(member).second) {
    environment_.report(
        log::Level::error, "member_version_too_old",
        {{"member", member}, {"newest_version", versions->newest}, {"cluster_version", version_}});
  }
  return true;
}

// Queries ----------------------------------------------------------------------------------------

LogPosition GroupMember::position() const {
  const auto leader = this->leader();
  const auto* member = members_.find(leader);
  return {.leader = leader.get(),
          .leader_address = member == nullptr ? std::string() : member->client,
          .term = replica_.term().get(),
          .commit_index = replica_.commit().get(),
          .applied_index = replica_.applied().get(),
          .first_index = replica_.log().first().get(),
          .last_index = replica_.log().last().get(),
          .snapshot_index = replica_.snapshot().index.get()};
}

Error GroupMember::not_leading() const {
  if (members_.is_removed()) {
    return {.code = Errc::unavailable, .detail = "this member was removed from the cluster"};
  }
  const auto leader = replica_.leader();
  if (leader == MemberId{} || leader == options_.id) {
    return {.code = Errc::unavailable,
            .detail = "this member is not the leader, and the leader is unknown"};
  }
  const auto* member = members_.find(leader);
  const bool has_address = member != nullptr && !member->client.empty();
  return {.code = Errc::unavailable,
          .detail = "this member is not the leader; the leader is member " +
                    std::to_string(leader.get()) +
                    (has_address ? " at " + member->client : std::string())};
}

std::vector<MemberStatus> GroupMember::statuses() const {
  std::vector<MemberStatus> all;
  all.reserve(members_.newest().size());
  for (const auto& member : members_.newest()) {
    MemberStatus status{.id = member.id.get(),
                        .is_voter = member.role == MemberRole::voter,
                        .peer_address = member.peer,
                        .client_address = member.client};
    if (const auto versions = versions_of(member.id)) {
      status.newest_version = versions->newest.get();
    }
    if (member.id == options_.id) {
      status.match_index = replica_.log().last().get();
    } else if (leads()) {
      status.match_index = replica_.match(member.id).value_or(Index{}).get();
      status.silent =
          std::chrono::duration_cast<std::chrono::milliseconds>(members_.silence(member.id, now_));
    }
    all.push_back(std::move(status));
  }
  return all;
}

}  // namespace tenure::server::raft
