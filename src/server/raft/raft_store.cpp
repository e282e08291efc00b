#include "server/raft/raft_store.hpp"

#include <algorithm>
#include <memory>
#include <utility>
#include <variant>

#include "core/batch.hpp"

namespace tenure::server::raft {

RaftStore::RaftStore(const RaftStoreOptions& options, Environment& environment,
                     RaftStoreState state)
    : options_(options),
      environment_(environment),
      recovered_(std::move(state.recovered)),
      group_(options, environment),
      state_(std::move(state.machine), listeners_),
      batcher_({.in_flight = options.in_flight,
                .commands_max = options.batch_commands_max,
                .bytes_max = options.batch_bytes_max,
                .entries_max = options.entries_in_flight_max,
                .disk_name = options.disk_name,
                .space_retry = options.space_retry}),
      reads_({.self = options.id,
              .reads_max = options.reads_max,
              .timeout = options.election_timeout,
              .repeat = options.heartbeat}),
      // Ten timeouts: a refused version change needs another state, which rarely comes sooner.
      version_(10 * options.election_timeout),
      snapshots_({.log_bytes = options.snapshot_log_bytes,
                  .factor = options.snapshot_factor,
                  .retry = options.snapshot_retry,
                  .resend = 4 * options.election_timeout},
                 state.snapshot_bytes) {
  group_.set_cluster_version(state_.version());
}

// Events -----------------------------------------------------------------------------------------

void RaftStore::start(Time now) {
  begin_event(now);
  snapshots_.start(recovered_->first);
  group_.start(*std::exchange(recovered_, std::nullopt));
  carry_out_actions();
  settle();
}

void RaftStore::receive(MemberId sender, const Message& message, Time now) {
  begin_event(now);
  if (group_.shows_lost_entries(sender, message)) {
    listeners_.member_lost_entries();
    if (is_ready_) {
      group_.repair_lost_entries();
      carry_out_actions();
    }
  }
  group_.receive(sender, message);
  carry_out_actions();
  group_.answer_removed_peer(sender, message);
  const auto* result = std::get_if<ProbeResult>(&message);
  if (result != nullptr && group_.leads() && result->term == replica().term()) {
    reads_.acknowledge(sender, result->round);
  }
  settle();
}

void RaftStore::disk_done(std::size_t count, Time now) {
  begin_event(now);
  group_.finish_writes(count);
  if (batcher_.is_paused() && may_submit()) {
    // First, so that the disk writes this entry while the last one is applied and answered.
    submit_gathered();
  }
  group_.disk_done(count);
  carry_out_actions();
  settle();
}

void RaftStore::disk_changed(Time now) {
  begin_event(now);
  settle();
}

void RaftStore::timeout(Time now) {
  begin_event(now);
  group_.timeout();
  carry_out_actions();
  if (const auto at = expiry_at(); at.has_value() && *at <= now_) {
    expire_leases();
  }
  refuse(reads_.take_expired(now_),
         {.code = Errc::unavailable,
          .detail = "no quorum confirmed the leadership of this member in time"});
  snapshots_.resume_if_due(now_);
  if (batcher_.take_retry(now_)) {
    environment_.drain_soon();
  }
  group_.send_removal_notices();
  choose_version();
  settle();
}

std::optional<Time> RaftStore::deadline() const {
  std::optional<Time> earliest = expiry_at();
  keep_earlier(earliest, group_.deadline());
  keep_earlier(earliest, reads_.deadline());
  keep_earlier(earliest, snapshots_.deadline());
  keep_earlier(earliest, batcher_.deadline());
  if (shutdown_.has_value() && shutdown_->until > now_) {
    keep_earlier(earliest, shutdown_->until);
  }
  return earliest;
}

// The time of an event may be slightly older than that of an earlier one, because threads read the
// clock before they post. Time never goes back for the objects of the store.
void RaftStore::begin_event(Time now) {
  now_ = std::max(now_, now);
  group_.set_time(now_);
}

// Carries out everything that an event has made possible: first leadership, then reads, then member
// changes and their actions, then log truncation. Snapshots and the shutdown see the final state.
void RaftStore::settle() {
  if (!is_ready_ && term_start_.has_value() && replica().applied() >= *term_start_) {
    become_ready();
  }
  notify_new_leader();
  confirm_reads();
  if (group_.settle()) {
    begin_own_term();
  }
  carry_out_actions();
  cut_log();
  begin_snapshot_if_due();
  snapshots_.complete_requests(replica().snapshot().index);
  check_shutdown();
  if (batcher_.is_paused() && may_submit()) {
    batcher_.resume();
    environment_.drain_soon();
  }
}

void RaftStore::carry_out_actions() {
  while (const auto action = group_.next_action()) {
    std::visit([this](const auto& what) { carry_out(what); }, *action);
  }
}

void RaftStore::carry_out(const ApplyEntry& action) {
  const auto& [index, entry] = action;
  if (entry.type == EntryType::command) {
    snapshots_.applied(entry.payload->size());
  }
  const auto before = state_.version();
  if (auto own = batcher_.take_applied(index, entry.term)) {
    if (own->batch.commands.size() > own->proposals) {
      is_expiry_proposed_ = false;
    }
    state_.apply(*std::move(own), now_);
  } else if (auto applied = state_.apply(entry); !applied) {
    environment_.fatal(applied.error().detail);
  }
  version_applied(before, index);
}

void RaftStore::carry_out(const RestoreState& action) {
  snapshots_.restored(action.snapshot.body->size());
  state_.replace([&](core::StateMachine before) {
    return environment_.restore(action.snapshot, std::move(before));
  });
  group_.set_cluster_version(state_.version());
}

// A new leader is not ready before it has applied the entry that was last at its election: an
// earlier read could miss a command that the former leader had acknowledged.
void RaftStore::carry_out(const ChangeRole& action) {
  if (action.role == Role::leader) {
    term_start_ = action.last;
    snapshots_.forget_sent();
    group_.begin_to_lead();
  } else {
    cease_to_lead();
  }
}

// Until the peer has the snapshot it rejects every heartbeat, and libraft asks for another one.
void RaftStore::carry_out(const SendSnapshot& action) {
  if (snapshots_.may_send(action.peer, action.index, now_)) {
    environment_.send_snapshot(action.peer, action.term);
  }
}

// Leadership -------------------------------------------------------------------------------------

void RaftStore::become_ready() {
  is_ready_ = true;
  state_.begin_clock(now_);
  choose_version();
  if (!version_.has_chosen()) {
    adopt_limits();
  }
  begin_own_term();
  set_known_leader(options_.id);
  notify_role();
}

void RaftStore::cease_to_lead() {
  const bool was_ready = std::exchange(is_ready_, false);
  term_start_.reset();
  is_expiry_proposed_ = false;
  batcher_.clear_own();
  version_.cease_to_lead();
  batcher_.give_up_all(
      {.code = Errc::unavailable,
       .detail = "this member lost the leadership; the outcome of the request is unknown: "
                 "retry with the same request id"});
  refuse(reads_.take_all(),
         {.code = Errc::unavailable, .detail = "this member lost the leadership"});
  group_.cease_to_lead();
  if (was_ready) {
    notify_role();
  }
}

void RaftStore::adopt_limits() {
  if (state().limits != core::at_version(options_.limits, state_.version())) {
    propose_own(core::SetLimits{.limits = options_.limits});
  }
}

// libraft appends no no-op for a leader whose whole log is committed. Member changes need an entry
// of the own term, reads do not. A group of one has no member changes.
void RaftStore::begin_own_term() {
  if (!group_.members().is_alone() && !batcher_.has_own() && !replica().has_entry_of_own_term()) {
    propose_own(core::Tick{});
  }
}

void RaftStore::notify_new_leader() {
  const auto leader = group_.leader();
  if (leader != known_leader_ && !group_.leads()) {
    set_known_leader(leader);
    notify_role();
  }
}

// Every member logs every change, the loss of the leader (0) included, so that the log of any
// member shows the gaps in leadership. A single node has no other leader.
void RaftStore::set_known_leader(MemberId leader) {
  known_leader_ = leader;
  if (!group_.members().is_alone()) {
    environment_.report(log::Level::info, "leader_changed",
                        {{"leader", leader}, {"term", replica().term()}});
  }
}

Error RaftStore::not_leading() const {
  return is_stopping_ ? Error{.code = Errc::unavailable, .detail = "the server stops"}
                      : group_.not_leading();
}

LogPosition RaftStore::position() const {
  const auto disk = environment_.disk();
  auto position = group_.position();
  position.is_leader = is_ready_;
  position.log_bytes = disk.log_bytes;
  position.snapshot_bytes = snapshots_.snapshot_bytes();
  position.has_space = !disk.space.is_short || batcher_.room(disk).for_growing > 0;
  return position;
}

void RaftStore::change_members(MemberChange change, Done done, Time now) {
  begin_event(now);
  if (!is_ready_ || is_stopping_) {
    done(std::unexpected(not_leading()));
    return;
  }
  group_.change_members(std::move(change), std::move(done));
  settle();
}

void RaftStore::transfer_leadership(MemberId to, Done done, Time now) {
  begin_event(now);
  if (!is_ready_ || is_stopping_) {
    done(std::unexpected(not_leading()));
    return;
  }
  group_.transfer_leadership(to, std::move(done));
  carry_out_actions();
  settle();
}

// Proposals --------------------------------------------------------------------------------------

void RaftStore::propose_own(core::Command command) {
  batcher_.add_own(std::move(command));
  environment_.drain_soon();
}

bool RaftStore::may_submit() const {
  return !group_.leads() || (is_ready_ && !group_.is_transferring() && !version_.is_in_flight() &&
                             batcher_.is_next_due(group_.writing()) &&
                             ProposalBatcher::is_space_known(environment_.disk()));
}

void RaftStore::drain(Time now) {
  begin_event(now);
  if (!may_submit()) {
    batcher_.pause();
    return;
  }
  if (submit_gathered()) {
    settle();
  }
}

bool RaftStore::submit_gathered() {
  const auto room = batcher_.room(environment_.disk());
  if (version_.has_chosen() && room.for_all > 0) {
    submit_version();
    return true;
  }
  auto gathered = batcher_.gather(room, now_);
  // After gather(), because other threads push proposals until then. A lease whose request is newer
  // than the stamp would expire early by the difference.
  begin_event(environment_.local_time());
  auto entry = batcher_.admit(std::move(gathered), room,
                              is_ready_ ? std::nullopt : std::optional(not_leading()), now_);
  if (version_.has_chosen()) {
    batcher_.retry_own(now_);
  }
  const bool has_commands = !entry.batch.commands.empty();
  if (has_commands) {
    submit(std::move(entry));
  }
  return has_commands;
}

void RaftStore::go_idle() {
  if (batcher_.has_more()) {
    environment_.drain_soon();
  }
}

void RaftStore::submit(ProposedEntry entry) {
  entry.batch.stamp.time = state_.time_at(entry.proposed);
  entry.batch.version = std::max(entry.batch.version, state_.version());
  entry.term = replica().term();
  const auto index = group_.submit(std::make_shared<const std::string>(core::encode(entry.batch)));
  if (!index) {
    is_expiry_proposed_ = false;
    batcher_.give_up(std::move(entry), index.error());
    return;
  }
  entry.index = *index;
  batcher_.add_in_flight(std::move(entry));
  carry_out_actions();
}

std::optional<Time> RaftStore::expiry_at() const {
  return is_ready_ && !is_expiry_proposed_ ? state_.next_expiry() : std::nullopt;
}

void RaftStore::expire_leases() {
  if (state_.is_expiry_due(now_)) {  // Cluster time may be a little behind.
    is_expiry_proposed_ = true;
    propose_own(core::Tick{});
  }
}

// Reads ------------------------------------------------------------------------------------------

void RaftStore::read(OnRead on_read, Time now) {
  begin_event(now);
  if (!group_.leads() || is_stopping_) {
    on_read(std::unexpected(not_leading()));
    return;
  }
  // A group of one cannot elect another leader, and all acknowledged commands have been applied.
  if (group_.members().is_alone() && is_ready_) {
    answer_read(std::move(on_read));
    return;
  }
  if (reads_.is_full()) {
    on_read(fail(Errc::resource_exhausted, "too many reads are waiting; try again later"));
    return;
  }
  reads_.add(std::move(on_read), now_);
  settle();
}

void RaftStore::peek(OnRead on_read, Time now) {
  begin_event(now);
  answer_read(std::move(on_read));
}

void RaftStore::answer_read(OnRead on_read) {
  const auto log = position();
  const auto members = this->members();
  const auto now = is_ready_ ? state_.time_at(now_) : state().now;
  on_read(View{.state = state(), .log = log, .now = now, .members = members});
}

void RaftStore::confirm_reads() {
  if (is_ready_) {
    for (auto& on_read : reads_.take_confirmed(group_.members().newest())) {
      answer_read(std::move(on_read));
    }
  }
  if (const auto round = reads_.next_round(now_)) {
    group_.send_round(*round);
  }
}

void RaftStore::refuse(std::vector<OnRead> reads, const Error& error) {
  for (auto& on_read : reads) {
    on_read(std::unexpected(error));
  }
}

// Cluster version --------------------------------------------------------------------------------

// A change of the members decides which members have to agree, so it comes first.
void RaftStore::choose_version() {
  if (is_ready_ && !is_stopping_ && !group_.is_changing() && version_.may_choose(now_) &&
      version_.choose(state_.version(), group_.all_versions())) {
    environment_.drain_soon();
  }
}

void RaftStore::submit_version() {
  const auto version = version_.begin_proposal(now_);
  batcher_.pause();
  ProposedEntry entry;
  entry.proposed = now_;
  entry.batch.version = version;
  entry.batch.commands.emplace_back(core::SetClusterVersion{version});
  entry.decisions.emplace_back(
      [this](const Result<Decided>& decided) { version_decided(decided); });
  submit(std::move(entry));
}

void RaftStore::version_decided(const Result<Decided>& decided) {
  version_.end_proposal();
  if (!is_ready_ || !decided) {
    return;
  }
  if (const auto* refused = std::get_if<core::Refused>(&decided->outcome)) {
    environment_.report(log::Level::warning, "cluster_version_rejected",
                        {{"version", state_.version()}, {"error", refused->error.detail}});
  }
  adopt_limits();
}

// After a downgrade the log still has entries of the newer version. A snapshot replaces them, so
// that a program that cannot read them can use the folder.
void RaftStore::version_applied(core::ClusterVersion before, Index index) {
  const auto version = state_.version();
  if (version == before) {
    return;
  }
  group_.set_cluster_version(version);
  environment_.report(log::Level::info, "cluster_version_changed", {{"version", version}});
  if (version < before) {
    snapshots_.request(index, [this, version](const Result<std::uint64_t>& taken) {
      if (taken) {
        environment_.report(log::Level::info, "downgrade_ready", {{"version", version}});
      }
    });
  }
}

// Snapshots --------------------------------------------------------------------------------------

void RaftStore::take_snapshot(SnapshotDone done, Time now) {
  begin_event(now);
  snapshots_.request(replica().applied(), std::move(done));
  settle();
}

void RaftStore::begin_snapshot_if_due() {
  const bool is_due = snapshots_.is_due(replica().snapshot().index, environment_.disk().space);
  if (auto mark = is_due ? replica().next_snapshot() : std::nullopt) {
    snapshots_.begin(*mark, now_);
    environment_.compact({.mark = *std::move(mark), .image = core::image_of(state())});
  }
}

void RaftStore::compacted(const Result<std::size_t>& bytes, Time now) {
  begin_event(now);
  const auto finished = snapshots_.finish(bytes, replica().snapshot().index, now_);
  switch (finished.outcome) {
    case SnapshotScheduler::Outcome::overtaken: break;
    case SnapshotScheduler::Outcome::failed:
      environment_.report(log::Level::warning, "snapshot_failed",
                          {{"error", bytes.error().detail}});
      listeners_.snapshot_failed();
      snapshots_.fail_requests(bytes.error());
      break;
    case SnapshotScheduler::Outcome::taken:
      group_.snapshot_taken(finished.mark);
      carry_out_actions();
      cut_log();
      if (environment_.disk().space.is_short) {
        snapshots_.pause(now_);
      }
      listeners_.snapshot_taken(finished.took);
      break;
  }
  settle();
}

void RaftStore::snapshot_unreadable(const Error& error, Time now) {
  begin_event(now);
  const Index bad = replica().snapshot().index;
  if (snapshots_.mark_unreadable(bad)) {
    environment_.report(log::Level::error, "snapshot_unreadable", {{"error", error.detail}});
    // The replacement has to cover more, so it may need one more entry.
    if (is_ready_ && replica().log().last() <= bad && !batcher_.has_own()) {
      propose_own(core::Tick{});
    }
  }
  settle();
}

void RaftStore::cut_log() {
  if (const auto last = snapshots_.cut(replica().log().first())) {
    environment_.cut(*last);
  }
}

// Shutdown ---------------------------------------------------------------------------------------

void RaftStore::stop(std::move_only_function<void()> done, Time now) {
  begin_event(now);
  is_stopping_ = true;
  group_.stop_elections();
  const Error why = not_leading();
  for (auto& proposal : proposal_queue().close()) {
    batcher_.refuse(std::move(proposal), why);
  }
  refuse(reads_.take_all(), why);
  group_.fail_change(why);
  shutdown_ = {.done = std::move(done),
               .until = now_ + options_.election_timeout + 2 * options_.heartbeat};
  auto finish = [this](const Result<void>&) { request_last_snapshot(); };
  if (group_.is_transferring()) {
    group_.await_transfer(finish);
  } else if (is_ready_ && group_.has_successor()) {
    group_.transfer_leadership({}, finish);
  } else {
    finish({});
  }
  carry_out_actions();
  settle();
}

// The next settle() begins the snapshot.
void RaftStore::request_last_snapshot() {
  shutdown_->is_handed_over = true;
  if (snapshots_.log_bytes() == 0) {
    end_shutdown();
    return;
  }
  snapshots_.request(replica().applied(), [this](const Result<std::uint64_t>&) { end_shutdown(); });
}

// The last snapshot only makes the next start faster. The shutdown does not wait for a snapshot
// that the replica cannot begin, and not beyond its deadline for entries to become durable.
void RaftStore::check_shutdown() {
  if (shutdown_.has_value() && shutdown_->is_handed_over && !snapshots_.is_running() &&
      (shutdown_->until <= now_ || !replica().next_snapshot().has_value())) {
    end_shutdown();
  }
}

void RaftStore::end_shutdown() {
  if (auto shutdown = std::exchange(shutdown_, std::nullopt)) {
    shutdown->done();
  }
}

void RaftStore::give_up_everything(const Error& error) {
  batcher_.give_up_all(error);
  refuse(reads_.take_all(), error);
  group_.fail_change(error);
  group_.fail_transfer(error);
  snapshots_.fail_requests(error);
}

}  // namespace tenure::server::raft
