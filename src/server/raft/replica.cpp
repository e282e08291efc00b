#include "server/raft/replica.hpp"

#include <algorithm>
#include <utility>
#include <variant>

#include "server/raft/shim.h"
#include "server/raft/shim_views.hpp"

namespace tenure::server::raft {
namespace {

// Maximum size of the payloads in one message that has more than one entry.
// 1 MiB bounds the time that heartbeats wait behind one message. A single larger entry is still
// sent.
constexpr std::size_t append_bytes_max = std::size_t{1} << 20;

bool is_only_voter(const std::string& configuration, MemberId id) {
  bool is_voter = false;
  std::size_t voters = 0;
  for (const auto& member : decode_members(configuration)) {
    voters += member.role == MemberRole::voter ? 1 : 0;
    is_voter |= member.role == MemberRole::voter && member.id == id;
  }
  return is_voter && voters == 1;
}

}  // namespace

void Replica::Destroy::operator()(shim* core) const {
  shim_destroy(core);
}

Replica::Replica(const ReplicaOptions& options) : options_(options) {
  const shim_options flat{
      .id = options.id.get(),
      .seed = options.seed,
      .election_timeout_ms = static_cast<unsigned>(options.election_timeout.count()),
      .heartbeat_ms = static_cast<unsigned>(options.heartbeat.count()),
      .entries_in_flight_max = options.entries_in_flight_max,
  };
  core_.reset(shim_create(&flat));
}

Replica::~Replica() = default;

void Replica::start(Recovered recovered) {
  if (core_ == nullptr) {
    fail_fatally("there is no memory for the consensus core");
    return;
  }
  log_ = LogWindow(recovered.first, recovered.entries);
  shim_snapshot mark{};
  auto event = event_of(shim_start);
  if (recovered.snapshot.has_value()) {
    snapshot_ = std::move(*recovered.snapshot);
    applied_ = snapshot_.index;
    configuration_ = snapshot_.configuration;
    configuration_index_ = snapshot_.configuration_index;
    mark = view_of(snapshot_);
    event.snapshot = &mark;
  }
  lead_in_a_new_term_if_alone(recovered);
  const auto entries = views_of(recovered.entries);
  event.term = recovered.term.get();
  event.voted_for = recovered.voted_for.get();
  event.index = recovered.first.get();
  event.entries = entries.data();
  event.entry_count = static_cast<unsigned>(entries.size());
  must_step(event, "start");
}

// R2: libraft lets a sole voter lead at once, in the term that it finds. If that term had another
// leader before, or this one before a crash, one index could get two different entries.
void Replica::lead_in_a_new_term_if_alone(Recovered& recovered) {
  const std::string* newest = &configuration_;
  for (const auto& entry : recovered.entries) {
    if (entry.type == EntryType::change) {
      newest = entry.payload.get();
    }
  }
  if (!is_only_voter(*newest, options_.id)) {
    return;
  }
  recovered.term = Term{recovered.term.get() + 1};
  recovered.voted_for = MemberId{};
  act(SaveVote{.term = recovered.term, .voted_for = recovered.voted_for});
}

void Replica::act(Action action) {
  actions_.push_back(std::move(action));
}

void Replica::fail_fatally(std::string why) {
  act(Fail{.why = std::move(why)});
}

std::optional<Action> Replica::next_action() {
  if (actions_.empty()) {
    return std::nullopt;
  }
  auto action = std::move(actions_.front());
  actions_.pop_front();
  return action;
}

void Replica::timeout() {
  must_step(event_of(shim_timeout), "timeout");
}

std::chrono::milliseconds Replica::deadline() const {
  return std::chrono::milliseconds(shim_deadline_ms(core_.get()));
}

Result<Index> Replica::submit(Bytes payload) {
  return submit_entry({.type = EntryType::command, .payload = std::move(payload)});
}

Result<Index> Replica::change(const std::vector<Member>& members) {
  if (is_changing()) {
    return fail(Errc::resource_exhausted, "another membership change is in progress");
  }
  return submit_entry({.type = EntryType::change,
                       .payload = std::make_shared<const std::string>(encode_members(members))});
}

Result<void> Replica::catch_up(MemberId learner) {
  if (role() != Role::leader || shim_catch_up_status(core_.get(), learner.get()) < 0) {
    return fail(Errc::unavailable, "this member is not the leader, or the member is unknown");
  }
  auto event = event_of(shim_catch_up);
  event.member = learner.get();
  must_step(event, "catch up");
  return {};
}

CatchUp Replica::catch_up_status(MemberId learner) const {
  const int status = shim_catch_up_status(core_.get(), learner.get());
  return status < 0 ? CatchUp::none : static_cast<CatchUp>(status);
}

Result<void> Replica::transfer(MemberId to) {
  auto event = event_of(shim_transfer);
  event.member = to.get();
  if (const int error = step(event); error != 0) {
    return fail(Errc::unavailable, shim_error_text(error));
  }
  return {};
}

Result<Index> Replica::submit_entry(Entry entry) {
  if (role() != Role::leader) {
    return fail(Errc::unavailable, "this member is not the leader");
  }
  const auto view = view_of(entry);
  const Index index = next(log_.last());
  auto event = event_of(shim_submit);
  event.entries = &view;
  event.entry_count = 1;
  if (const int error = step(event, {&entry, 1}); error != 0) {
    return fail(Errc::unavailable, shim_error_text(error));
  }
  return index;
}

void Replica::disk_done(std::size_t count) {
  Index persisted{};
  for (; count > 0; --count) {
    const DiskOperation done = std::move(operations_.front());
    operations_.pop_front();
    if (done.install.has_value()) {
      report_persisted(std::exchange(persisted, Index{}));
      finish_install(*done.install);
    } else if (!done.is_void) {
      persisted = done.last;
    }
  }
  report_persisted(persisted);
  deliver_snapshot_mark();
}

void Replica::report_persisted(Index index) {
  if (index.get() <= shim_last_stored(core_.get()) || shim_is_installing(core_.get())) {
    return;
  }
  auto event = event_of(shim_persisted_entries);
  event.index = index.get();
  must_step(event, "persisted entries");
}

void Replica::finish_install(const Snapshot& snapshot) {
  snapshot_ = snapshot.mark;
  applied_ = snapshot_.index;
  configuration_ = snapshot_.configuration;
  configuration_index_ = snapshot_.configuration_index;
  act(RestoreState{.snapshot = snapshot});
  const auto mark = view_of(snapshot_);
  auto event = event_of(shim_persisted_snapshot);
  event.snapshot = &mark;
  must_step(event, "persisted snapshot");
}

std::optional<SnapshotMark> Replica::next_snapshot() const {
  const auto* entry = log_.find(applied_);
  if (entry == nullptr || applied_ <= snapshot_.index || shim_is_installing(core_.get()) ||
      applied_ != commit()) {
    return std::nullopt;
  }
  return SnapshotMark{.index = applied_,
                      .term = entry->term,
                      .configuration_index = configuration_index_,
                      .configuration = configuration_};
}

void Replica::snapshot_taken(const SnapshotMark& mark) {
  taken_ = mark;
  deliver_snapshot_mark();
}

void Replica::deliver_snapshot_mark() {
  if (!taken_.has_value()) {
    return;
  }
  // R7: an install has overtaken this snapshot, and libraft would go back to it.
  if (shim_is_installing(core_.get()) || taken_->index <= snapshot_.index) {
    taken_.reset();
    return;
  }
  if (taken_->index.get() > shim_last_stored(core_.get())) {
    return;
  }
  snapshot_ = std::move(*taken_);
  taken_.reset();
  const auto mark = view_of(snapshot_);
  auto event = event_of(shim_snapshot_taken);
  event.trailing = options_.trailing;
  event.snapshot = &mark;
  must_step(event, "snapshot taken");
  if (snapshot_.index.get() > options_.trailing) {
    log_.cut_to(Index{snapshot_.index.get() - options_.trailing});
  }
}

Role Replica::role() const {
  switch (shim_state_of(core_.get())) {
    case shim_leader: return Role::leader;
    case shim_candidate: return Role::candidate;
    default: return Role::follower;
  }
}

Term Replica::term() const {
  return Term{shim_term(core_.get())};
}

MemberId Replica::leader() const {
  return MemberId{shim_leader_id(core_.get())};
}

Index Replica::commit() const {
  return Index{shim_commit(core_.get())};
}

std::optional<Index> Replica::match(MemberId peer) const {
  std::uint64_t index = 0;
  return shim_match(core_.get(), peer.get(), &index) ? std::optional(Index{index}) : std::nullopt;
}

std::optional<Term> Replica::term_at(Index index) const {
  if (const auto* entry = log_.find(index); entry != nullptr) {
    return entry->term;
  }
  return index != Index{} && index == snapshot_.index ? std::optional(snapshot_.term)
                                                      : std::nullopt;
}

bool Replica::is_changing() const {
  return shim_is_changing(core_.get());
}

int Replica::step(shim_event event, std::span<const Entry> given, const Snapshot* received) {
  shim_update update{};
  event.now_ms = static_cast<std::uint64_t>(now_.count());
  const int error = shim_step(core_.get(), &event, &update);
  if (error == 0) {
    process(update, given, received);
  }
  return error;
}

void Replica::must_step(const shim_event& event, const char* what) {
  if (const int error = step(event); error != 0) {
    fail_fatally(std::string("the consensus core refused the event '") + what +
                 "': " + shim_error_text(error));
  }
}

// Messages ----------------------------------------------------------------------------------------

void Replica::receive(MemberId sender, const Message& message) {
  if (const auto* append = std::get_if<AppendEntries>(&message)) {
    receive_append(sender, *append);
    return;
  }
  const auto* result = std::get_if<AppendResult>(&message);
  if (result != nullptr && is_stale(sender, *result)) {
    return;
  }
  const Snapshot* snapshot = nullptr;
  if (const auto* install = std::get_if<InstallSnapshot>(&message)) {
    // R6: one install at a time; the leader repeats a snapshot that is still needed.
    // R11: libraft confirms a snapshot of an earlier term with an index that it never set. A sender
    // that leads again would take that for the end of this log.
    if (shim_is_installing(core_.get()) || install->term < term()) {
      return;
    }
    snapshot = &install->snapshot;
  }
  give(view_of(sender, message), {}, snapshot);
  send_timeout_now();
}

// R4: a late rejection would move the next index of the follower below the index that it has
// acknowledged.
bool Replica::is_stale(MemberId sender, const AppendResult& message) const {
  std::uint64_t match = 0;
  return message.rejected != Index{} && message.term == term() &&
         shim_match(core_.get(), sender.get(), &match) &&
         (message.rejected.get() <= match || message.last.get() < match);
}

void Replica::receive_append(MemberId sender, const AppendEntries& message) {
  // R11: a rejection of index 0 means success.
  if (message.term < term() && message.previous == Index{}) {
    return;
  }
  AppendEntries begin{.term = message.term,
                      .previous = message.previous,
                      .previous_term = message.previous_term,
                      .commit = message.commit};
  std::span<const Entry> entries = message.entries;
  // R5: libraft would append entries that the snapshot covers in the wrong place.
  if (message.term >= term() && message.previous < snapshot_.index &&
      !shim_is_installing(core_.get())) {
    const auto known = snapshot_.index.get() - message.previous.get();
    entries = entries.subspan(std::min<std::size_t>(entries.size(), known));
    begin.previous = snapshot_.index;
    begin.previous_term = snapshot_.term;
  }
  // R1: libraft takes the index of the first entry of a message for the index of the change.
  std::size_t first = 0;
  do {
    std::size_t end = std::min(first + 1, entries.size());
    while (end < entries.size() && entries[end].type != EntryType::change) {
      ++end;
    }
    give_append(sender, begin, entries.subspan(first, end - first));
    if (end > 0) {
      begin.previous = next(begin.previous, end - first);
      begin.previous_term = entries[end - 1].term;
    }
    first = end;
  } while (first < entries.size() && term() <= message.term);
}

void Replica::give_append(MemberId sender, const AppendEntries& message,
                          std::span<const Entry> entries) {
  const auto views = views_of(entries);
  auto flat = view_of(sender, message);
  flat.entries = views.data();
  flat.entry_count = static_cast<unsigned>(views.size());
  give(flat, entries, nullptr);
}

void Replica::give(const shim_message& flat, std::span<const Entry> entries,
                   const Snapshot* snapshot) {
  // A message of a peer must not end this process: if libraft refuses it, it is dropped.
  auto event = event_of(shim_receive);
  event.message = &flat;
  static_cast<void>(step(event, entries, snapshot));
}

// libraft counts entries and does not know their size. Entries that exceed the size of a message
// become several messages, and the peer answers each.
void Replica::send_entries(const shim_message& flat) {
  const MemberId peer{flat.peer};
  AppendEntries message{.term = Term{flat.term},
                        .previous = Index{flat.previous_index},
                        .previous_term = Term{flat.previous_term},
                        .commit = Index{flat.commit}};
  const Index last = next(message.previous, flat.entry_count);
  if (flat.entry_count > 0 && (next(message.previous) < log_.first() || last > log_.last())) {
    fail_fatally("entries that a peer needs are not in the log");
    return;
  }
  std::size_t bytes = 0;
  for (Index index = next(message.previous); index <= last; index = next(index)) {
    const Entry& entry = *log_.find(index);
    if (!message.entries.empty() && bytes + entry.payload->size() > append_bytes_max) {
      const AppendEntries rest{.term = message.term,
                               .previous = Index{index.get() - 1},
                               .previous_term = message.entries.back().term,
                               .commit = message.commit};
      act(SendMessage{.peer = peer, .message = std::exchange(message, rest)});
      bytes = 0;
    }
    bytes += entry.payload->size();
    message.entries.push_back(entry);
  }
  act(SendMessage{.peer = peer, .message = std::move(message)});
}

// R11: a rejection because of the term carries an index that libraft never set.
AppendResult Replica::result_of(const shim_message& flat) const {
  auto last = Index{flat.last_index};
  if (flat.rejected > 0) {
    last = std::min({last, Index{flat.rejected - 1}, log_.last()});
  }
  return {.term = Term{flat.term}, .rejected = Index{flat.rejected}, .last = last};
}

void Replica::send(const shim_message& flat) {
  const MemberId peer{flat.peer};
  const Term term{flat.term};
  switch (flat.type) {
    case shim_append_entries: send_entries(flat); return;
    case shim_append_result: act(SendMessage{.peer = peer, .message = result_of(flat)}); return;
    case shim_request_vote:
      act(SendMessage{.peer = peer,
                      .message = RequestVote{.term = term,
                                             .candidate = MemberId{flat.candidate},
                                             .last = Index{flat.last_index},
                                             .last_term = Term{flat.last_term},
                                             .disrupts_leader = flat.disrupts_leader,
                                             .is_pre_vote = flat.is_pre_vote}});
      return;
    case shim_vote_result: {
      // R3: a refused pre-vote must carry the newer term, or the candidate never learns it.
      const bool hides_term = flat.is_pre_vote && !flat.is_granted;
      const Term answered = hides_term ? std::max(term, this->term()) : term;
      act(SendMessage{
          .peer = peer,
          .message = VoteResult{
              .term = answered, .is_granted = flat.is_granted, .is_pre_vote = flat.is_pre_vote}});
      return;
    }
    case shim_install_snapshot:
      act(SendSnapshot{.peer = peer, .term = term, .index = snapshot_.index});
      return;
    case shim_timeout_now:
      take_over_ = {
          .to = peer,
          .message = {
              .term = term, .last = Index{flat.last_index}, .last_term = Term{flat.last_term}}};
      send_timeout_now();
      return;
  }
}

// R10: libraft asks the successor to take over when the last entries are on their way. A successor
// that still writes them ignores that, and libraft does not repeat it: no entry could be submitted
// for an election timeout, and then this member would still lead.
void Replica::send_timeout_now() {
  if (!take_over_.has_value()) {
    return;
  }
  if (shim_transferee(core_.get()) != take_over_->to.get()) {
    take_over_.reset();
  } else if (match(take_over_->to) >= take_over_->message.last) {
    const auto [to, message] = *std::exchange(take_over_, std::nullopt);
    act(SendMessage{.peer = to, .message = message});
  }
}

// Updates -----------------------------------------------------------------------------------------

// INVARIANT: this order of actions. A vote that is not durable could be given twice. A message may
// refer to entries that the log in memory must have. A role change or an applied entry comes after
// everything that it follows from. `update` dies with the next step, so apply_committed(), which
// may take one, comes last.
void Replica::process(const shim_update& update, std::span<const Entry> given,
                      const Snapshot* received) {
  if ((update.flags & (shim_has_term | shim_has_vote)) != 0) {
    act(SaveVote{.term = term(), .voted_for = MemberId{shim_voted_for(core_.get())}});
  }
  if ((update.flags & shim_has_entries) != 0) {
    append(update, given);
  }
  if ((update.flags & shim_has_snapshot) != 0) {
    install(update, *received);
  }
  // Before the messages: their recipients may be new members.
  notice_members();
  for (unsigned i = 0; i < update.message_count; ++i) {
    send(update.messages[i]);
  }
  if ((update.flags & shim_has_state) != 0 && role() != role_) {
    role_ = role();
    act(ChangeRole{.role = role_, .term = term(), .last = log_.last()});
  }
  if ((update.flags & shim_has_commit) != 0) {
    apply_committed();
  }
}

void Replica::notice_members() {
  const auto flat = shim_mark_configuration(core_.get());
  const ConfigurationMark mark{
      .place = flat.place, .committed = flat.committed, .uncommitted = flat.uncommitted};
  if (mark == configuration_mark_) {
    return;
  }
  configuration_mark_ = mark;
  std::vector<shim_member> members(shim_configuration_members(core_.get(), nullptr, 0));
  shim_configuration_members(core_.get(), members.data(), members.size());
  std::vector<Member> out;
  out.reserve(members.size());
  for (const auto& member : members) {
    out.push_back(member_of(member));
  }
  act(ChangeMembers{.members = std::move(out), .index = newest_configuration_index()});
}

void Replica::append(const shim_update& update, std::span<const Entry> given) {
  const Index first{update.entries_index};
  std::vector<Entry> entries;
  entries.reserve(update.entry_count);
  for (const auto& view : std::span(update.entries, update.entry_count)) {
    // libraft returns the bytes that it was given, perhaps without the first entries. Only the
    // no-op of a new leader is its own.
    while (!given.empty() && given.front().payload->data() != view.payload.start) {
      given = given.subspan(1);
    }
    entries.push_back({.term = Term{view.term},
                       .type = static_cast<EntryType>(view.type),
                       .payload = !given.empty() ? given.front().payload
                                                 : std::make_shared<const std::string>(
                                                       static_cast<const char*>(view.payload.start),
                                                       view.payload.size)});
  }
  log_.replace_from(first, entries);
  // Replaced entries that are on their way to the disk must not be reported as durable.
  for (auto& operation : operations_) {
    if (!operation.install.has_value() && operation.last >= first) {
      operation.is_void |= operation.first >= first;
      operation.last = Index{first.get() - 1};
    }
  }
  operations_.push_back({.first = first, .last = next(first, entries.size() - 1)});
  act(WriteEntries{.first = first, .entries = std::move(entries)});
}

void Replica::install(const shim_update& update, const Snapshot& received) {
  const auto* configuration = static_cast<const char*>(update.snapshot.configuration.start);
  const Snapshot snapshot{
      .mark = {.index = Index{update.snapshot.index},
               .term = Term{update.snapshot.term},
               .configuration_index = Index{update.snapshot.configuration_index},
               .configuration = {configuration, update.snapshot.configuration.size}},
      .body = received.body};
  log_.restart_at(next(snapshot.mark.index));
  for (auto& operation : operations_) {
    operation.is_void = true;
  }
  taken_.reset();  // R7
  operations_.push_back({.install = snapshot});
  act(WriteSnapshot{.snapshot = snapshot});
}

void Replica::apply_committed() {
  while (!shim_is_installing(core_.get()) && applied_ < commit()) {
    const Index index = next(applied_);
    const auto* found = log_.find(index);
    if (found == nullptr) {
      if (index < log_.first()) {
        fail_fatally("an entry that is to be applied is no longer in the log");
      }
      return;
    }
    const Entry entry = *found;  // A change takes a step, and that may move the log.
    applied_ = index;
    if (entry.type == EntryType::change) {
      apply_change(index, entry);
    } else {
      act(ApplyEntry{.index = index, .entry = entry});
    }
  }
}

void Replica::apply_change(Index index, const Entry& entry) {
  configuration_ = *entry.payload;
  configuration_index_ = index;
  act(ApplyEntry{.index = index, .entry = entry});
  auto event = event_of(shim_configuration);
  event.index = index.get();
  event.configuration = view_of(configuration_);
  must_step(event, "configuration");
}

}  // namespace tenure::server::raft
