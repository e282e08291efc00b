#include "server/raft/replica.hpp"

#include <algorithm>
#include <utility>

#include "server/raft/shim.h"
#include "server/raft/shim_views.hpp"

namespace tenure::server::raft {
namespace {

bool is_only_voter(const std::string& configuration, MemberId id) {
  bool is_voter = false;
  std::size_t voters = 0;
  for (const auto& member : decode_members(configuration)) {
    voters += member.part == Part::voter ? 1 : 0;
    is_voter |= member.part == Part::voter && member.id == id;
  }
  return is_voter && voters == 1;
}

}  // namespace

void Replica::Destroy::operator()(shim* core) const {
  shim_destroy(core);
}

Replica::Replica(const ReplicaOptions& options, Effects& effects)
    : options_(options), effects_(effects) {
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
    effects_.fatal("there is no memory for the consensus core");
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

// R2: the library lets the only voter lead at once, in the term that it finds. If that term had
// another leader before, or this one before a crash, one index could get two different entries.
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
  effects_.save_vote(recovered.term, recovered.voted_for);
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
    return fail(Errc::resource_exhausted, "another change of the members is not finished yet");
  }
  return submit_entry({.type = EntryType::change,
                       .payload = std::make_shared<const std::string>(encode_members(members))});
}

Result<void> Replica::catch_up(MemberId standby) {
  if (role() != Role::leader || shim_catch_up_status(core_.get(), standby.get()) < 0) {
    return fail(Errc::unavailable, "this member does not lead, or knows no such member");
  }
  auto event = event_of(shim_catch_up);
  event.member = standby.get();
  must_step(event, "catch up");
  return {};
}

CatchUp Replica::catch_up_status(MemberId standby) const {
  const int status = shim_catch_up_status(core_.get(), standby.get());
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
    return fail(Errc::unavailable, "this member does not lead");
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
  effects_.restore(snapshot);
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
  // R7: an install has overtaken it, and the library would go back.
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
  event.now_ms = static_cast<std::uint64_t>(effects_.now().count());
  const int error = shim_step(core_.get(), &event, &update);
  if (error == 0) {
    process(update, given, received);
  }
  return error;
}

void Replica::must_step(const shim_event& event, const char* what) {
  if (const int error = step(event); error != 0) {
    effects_.fatal(std::string("the consensus core refused the event '") + what +
                   "': " + shim_error_text(error));
  }
}

}  // namespace tenure::server::raft
