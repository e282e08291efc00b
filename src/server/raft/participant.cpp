#include "server/raft/participant.hpp"

#include <algorithm>
#include <utility>

namespace tenure::server::raft {
namespace {

// The library may be due at once, again and again.
constexpr std::chrono::milliseconds shortest_pause{1};

ReplicaOptions replica_options(const ParticipantOptions& options) {
  return {.id = options.id,
          .seed = options.seed,
          .election_timeout = options.election_timeout,
          .heartbeat = options.heartbeat,
          .entries_in_flight_max = options.peer_entries_max,
          .trailing = options.trailing_entries};
}

void keep_earlier(std::optional<Time>& earliest, std::optional<Time> other) {
  if (other.has_value() && (!earliest.has_value() || *other < *earliest)) {
    earliest = other;
  }
}

}  // namespace

Participant::Participant(const ParticipantOptions& options, Surroundings& surroundings,
                         ParticipantState state)
    : options_(options),
      surroundings_(surroundings),
      machine_(std::move(state.machine)),
      recovered_(std::move(state.recovered)),
      replica_(replica_options(options), *this),
      intake_(options.in_flight),
      snapshot_bytes_(state.snapshot_bytes) {}

void Participant::start(Time now) {
  arrive(now);
  if (const auto& snapshot = recovered_->snapshot; snapshot.has_value()) {
    apply_members(snapshot->configuration_index, decode_members(snapshot->configuration));
  }
  cut_before_ = recovered_->first;
  replica_.start(*std::exchange(recovered_, std::nullopt));
  settle();
}

void Participant::receive(MemberId sender, const Message& message, Time now) {
  arrive(now);
  if (find(sender) != nullptr) {
    heard_[sender] = now_;
  }
  const bool is_ours = std::holds_alternative<Probe>(message) ||
                       std::holds_alternative<ProbeResult>(message) ||
                       std::holds_alternative<Dismissal>(message);
  if (is_ours) {
    receive_own(sender, message);
  } else {
    doubt(sender, message);
    replica_.receive(sender, message);
    tell_stranger(sender, message);
  }
  settle();
}

void Participant::receive_own(MemberId sender, const Message& message) {
  if (const auto* probe = std::get_if<Probe>(&message)) {
    answer_probe(sender, *probe);
  } else if (const auto* result = std::get_if<ProbeResult>(&message)) {
    if (replica_.role() == Role::leader && result->term == replica_.term()) {
      reads_.answered(sender, result->round);
    }
  } else {
    receive_dismissal(std::get<Dismissal>(message));
  }
}

void Participant::disk_done(std::size_t count, Time now) {
  arrive(now);
  writing_ -= count;
  if (is_draining_paused_ && may_submit()) {
    // First of all: the disk writes it while the last one is applied and answered.
    submit_gathered();
  }
  replica_.disk_done(count);
  settle();
}

void Participant::disk_changed(Time now) {
  arrive(now);
  settle();
}

void Participant::timeout(Time now) {
  arrive(now);
  if (has_replica_timer() && this->now() >= replica_.deadline()) {
    replica_.timeout();
  }
  if (const auto at = tick_at(); at.has_value() && *at <= now_) {
    tick();
  }
  refuse_reads(reads_.take_expired(now_),
               {.code = Errc::unavailable,
                .detail = "no majority of the members confirmed in time that this member leads"});
  if (!reads_.is_idle() && reads_.began_at() + options_.heartbeat <= now_) {
    ask_round();
  }
  if (compact_again_at_.has_value() && *compact_again_at_ <= now_) {
    compact_again_at_.reset();
  }
  if (own_again_at_.has_value() && *own_again_at_ <= now_) {
    own_again_at_.reset();
    surroundings_.drain_soon();
  }
  tell_the_leaving();
  adopt_version();
  settle();
}

std::optional<Time> Participant::deadline() const {
  std::optional<Time> earliest = tick_at();
  if (has_replica_timer()) {
    keep_earlier(earliest, std::max(Time(replica_.deadline()), now_ + shortest_pause));
  }
  keep_earlier(earliest, reads_.deadline(options_.heartbeat));
  keep_earlier(earliest, compact_again_at_);
  keep_earlier(earliest, own_again_at_);
  if (transfer_.has_value()) {
    keep_earlier(earliest, transfer_->until);
  }
  if (change_.has_value() && change_->until > now_) {
    keep_earlier(earliest, change_->until);
  }
  if (stopping_.has_value() && stopping_->until > now_) {
    keep_earlier(earliest, stopping_->until);
  }
  for (const auto& leaving : leaving_) {
    keep_earlier(earliest, leaving.tell_at);
  }
  return earliest;
}

void Participant::arrive(Time now) {
  now_ = std::max(now_, now);
}

void Participant::settle() {
  if (!is_ready_ && past_.has_value() && replica_.applied() >= *past_) {
    begin_to_lead();
  }
  notice_leader();
  confirm_reads();
  check_transfer();
  advance_change();
  cut_log();
  compact_if_due();
  if (!wishes_.empty()) {
    grant_wishes();
  }
  check_stop();
  if (is_draining_paused_ && may_submit()) {
    resume_draining();
  }
}

void Participant::begin_to_lead() {
  is_ready_ = true;
  clock_.begin(machine_.state().now, now_);
  adopt_version();
  if (!version_to_set_.has_value()) {
    adopt_limits();
  }
  begin_own_term();
  if (!is_alone()) {
    surroundings_.report(
        Severity::note, "this member leads in term " + std::to_string(replica_.term().get()) + ".");
  }
  told_leader_ = options_.id;
  tell_role();
}

void Participant::adopt_limits() {
  const auto& state = machine_.state();
  if (state.limits != core::at_version(options_.limits, state.version)) {
    propose_own(core::SetLimits{.limits = options_.limits});
  }
}

// A leader that begins with nothing but committed entries is given no no-op by the library. Reads
// need none: what it has is all that was ever acknowledged. Changes of the members do. A member
// that is alone has no changes.
void Participant::begin_own_term() {
  if (!is_alone() && own_commands_.empty() && !replica_.has_entry_of_own_term()) {
    propose_own(core::Tick{});
  }
}

// One that was removed hears nothing any more, and would take the last leader for the leader for
// ever.
MemberId Participant::leader() const {
  return is_dismissed() && replica_.role() != Role::leader ? MemberId{} : replica_.leader();
}

void Participant::notice_leader() {
  const auto leader = this->leader();
  if (leader != told_leader_ && replica_.role() != Role::leader) {
    told_leader_ = leader;
    tell_role();
  }
}

void Participant::tell_role() {
  const auto log = position();
  for (auto* listener : listeners_) {
    listener->role_changed(log);
  }
}

std::optional<Time> Participant::tick_at() const {
  const auto deadline = machine_.next_deadline();
  if (!is_ready_ || is_tick_on_its_way_ || !deadline.has_value()) {
    return std::nullopt;
  }
  return clock_.local(*deadline);
}

void Participant::tick() {
  if (*machine_.next_deadline() > clock_.at(now_)) {
    return;  // Cluster time is a little behind; once more in a moment.
  }
  is_tick_on_its_way_ = true;
  propose_own(core::Tick{});
}

LogPosition Participant::position() const {
  const auto [space, segment_bytes, log_bytes] = surroundings_.disk();
  const auto leader = this->leader();
  const auto* member = find(leader);
  return {.is_leader = is_ready_,
          .leader = leader.get(),
          .leader_address = member == nullptr ? std::string() : member->client,
          .term = replica_.term().get(),
          .commit = replica_.commit().get(),
          .applied = replica_.applied().get(),
          .first = replica_.log().first().get(),
          .last = replica_.log().last().get(),
          .snapshot = replica_.snapshot().index.get(),
          .log_bytes = log_bytes,
          .snapshot_bytes = snapshot_bytes_,
          .has_space = !space.is_short || room().for_growing > 0};
}

bool Participant::is_alone() const {
  return members_.size() == 1 && members_.front().id == options_.id;
}

// A member that is alone has nobody to send heartbeats to and nobody to miss; one that was removed
// must not disturb the others, and one that stops does not want to lead.
bool Participant::has_replica_timer() const {
  const bool leads = replica_.role() == Role::leader;
  return leads ? !is_alone() : !is_stopping_ && !is_dismissed();
}

Error Participant::not_leading() const {
  if (is_stopping_) {
    return {.code = Errc::unavailable, .detail = "the server stops"};
  }
  if (is_dismissed()) {
    return {.code = Errc::unavailable, .detail = "this member was removed from the cluster"};
  }
  const auto leader = replica_.leader();
  if (leader == MemberId{} || leader == options_.id) {
    return {.code = Errc::unavailable,
            .detail = "this member does not lead, and knows of nobody who does at present"};
  }
  const auto* member = find(leader);
  const bool has_address = member != nullptr && !member->client.empty();
  return {.code = Errc::unavailable,
          .detail = "this member does not lead; member " + std::to_string(leader.get()) +
                    (has_address ? " at " + member->client : std::string()) + " does"};
}

void Participant::stop(std::move_only_function<void()> done, Time now) {
  arrive(now);
  is_stopping_ = true;
  const Error why = not_leading();
  for (auto& proposal : intake_.close()) {
    refuse(std::move(proposal), why);
  }
  refuse_reads(reads_.take_all(), why);
  end_change(std::unexpected(why));
  stopping_ = {.done = std::move(done),
               .until = now_ + options_.election_timeout + 2 * options_.heartbeat};
  auto finish = [this](const Result<void>&) { begin_last_snapshot(); };
  if (transfer_.has_value()) {
    transfer_->done = [before = std::move(transfer_->done), finish](Result<void> result) mutable {
      before(result);
      finish(result);
    };
  } else if (const auto successor = best_successor(); is_ready_ && successor != MemberId{}) {
    begin_transfer(successor, finish);
  } else {
    finish({});
  }
  settle();
}

void Participant::begin_last_snapshot() {
  stopping_->is_handed_over = true;
  if (log_bytes_ == 0) {
    end_stop();
    return;
  }
  request_snapshot([this](const Result<std::uint64_t>&) { end_stop(); });
}

// A snapshot only saves time at the next start. Nobody waits for one that cannot begin, because of
// what the leader says or does not say, nor for one whose entries the disk does not take.
void Participant::check_stop() {
  if (stopping_.has_value() && stopping_->is_handed_over && !compaction_.has_value() &&
      (stopping_->until <= now_ || !replica_.next_snapshot().has_value())) {
    end_stop();
  }
}

void Participant::end_stop() {
  if (auto stopping = std::exchange(stopping_, std::nullopt)) {
    stopping->done();
  }
}

void Participant::give_up_everything(const Error& error) {
  give_up_flights(error);
  refuse_reads(reads_.take_all(), error);
  end_change(std::unexpected(error));
  end_transfer(std::unexpected(error));
  for (auto& wish : std::exchange(wishes_, {})) {
    wish.done(std::unexpected(error));
  }
}

}  // namespace tenure::server::raft
