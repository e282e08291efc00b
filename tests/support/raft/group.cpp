#include "support/raft/group.hpp"

#include <algorithm>
#include <utility>

#include <gtest/gtest.h>

#include "support/raft/event_line.hpp"

namespace tenure::test {

using namespace server::raft;
using std::chrono::milliseconds;

namespace {

std::string address(const std::string& kind, std::uint64_t id) {
  return kind + std::to_string(id) + ":7420";
}

/// Lets time pass until the callback that `ask` is given has been called.
template <class Answer, class Ask>
Answer await(RaftGroup& group, Ask ask) {
  auto answer = std::make_shared<std::optional<Answer>>();
  ask([answer](Answer result) { *answer = std::move(result); });
  EXPECT_TRUE(group.eventually([&] { return answer->has_value(); })) << "no answer";
  return answer->has_value() ? std::move(**answer) : Answer(fail(Errc::timed_out, "no answer"));
}

}  // namespace

RaftGroup::RaftGroup(std::size_t initial_members, std::size_t others, RaftStoreOptions options) {
  std::vector<Member> members;
  for (std::uint64_t id = 1; id <= initial_members; ++id) {
    members.push_back(founder(id));
  }
  for (std::uint64_t id = 1; id <= initial_members + others; ++id) {
    options.id = MemberId{id};
    options.seed = static_cast<std::uint32_t>(id * 7919);
    machines_.push_back(std::make_unique<Machine>(*this, options));
    if (id <= initial_members) {
      auto& durable = machines_.back()->durable();
      durable.term = Term{1};
      durable.entries = {{.term = Term{1},
                          .type = EntryType::change,
                          .payload = std::make_shared<const std::string>(encode_members(members))}};
    }
  }
  for (auto& machine : machines_) {
    machine->boot();
  }
}

RaftGroup::~RaftGroup() {
  for (auto& machine : machines_) {
    EXPECT_EQ(machine->failure, "") << "member " << machine->id().get();
  }
}

Member RaftGroup::founder(std::uint64_t id) {
  return {.id = MemberId{id},
          .role = MemberRole::voter,
          .peer = address("peer", id),
          .client = address("client", id)};
}

server::AddMember RaftGroup::addition(std::uint64_t id) {
  return {.id = id, .peer_address = address("peer", id), .client_address = address("client", id)};
}

void RaftGroup::pass(milliseconds time) {
  for (const auto end = now_ + time; now_ < end;) {
    now_ += milliseconds(1);
    deliver_due();
    for (auto& machine : machines_) {
      if (machine->is_up()) {
        machine->work();
      }
    }
  }
}

void RaftGroup::deliver_due() {
  while (!in_flight_.empty() && in_flight_.front().due <= now_) {
    const auto message = std::move(in_flight_.front());
    in_flight_.pop_front();
    auto& machine = at(message.peer.get());
    if (machine.is_up() && !cut_off_.contains(message.from) && !cut_off_.contains(message.peer)) {
      machine.store().receive(message.from, message.message, now_);
    }
  }
}

RaftGroup::Machine* RaftGroup::leader() {
  for (auto& machine : machines_) {
    if (machine->leads() && !cut_off_.contains(machine->id())) {
      return machine.get();
    }
  }
  return nullptr;
}

RaftGroup::Machine& RaftGroup::elect() {
  EXPECT_TRUE(eventually([this] { return leader() != nullptr; })) << "no leader";
  return *leader();
}

void RaftGroup::crash(std::uint64_t id) {
  at(id).crash();
  std::erase_if(in_flight_,
                [id](const InFlightMessage& message) { return message.from.get() == id; });
}

void RaftGroup::boot(std::uint64_t id) {
  at(id).boot();
}

Result<server::Decided> RaftGroup::propose(Machine& machine, core::Command command) {
  return await<Result<server::Decided>>(
      *this, [&](auto done) { machine.propose(std::move(command), std::move(done)); });
}

Result<std::string> RaftGroup::read(Machine& machine) {
  return await<Result<std::string>>(*this, [&](auto done) {
    machine.store().read(
        [done = std::move(done)](Result<server::View> view) mutable {
          done(view ? Result<std::string>(core::encode(view->state))
                    : Result<std::string>(std::unexpected(view.error())));
        },
        now_);
  });
}

Result<void> RaftGroup::change(Machine& machine, server::MemberChange change) {
  return await<Result<void>>(*this, [&](auto done) {
    machine.store().change_members(std::move(change), std::move(done), now_);
  });
}

Result<void> RaftGroup::transfer(Machine& machine, std::uint64_t to) {
  return await<Result<void>>(*this, [&](auto done) {
    machine.store().transfer_leadership(MemberId{to}, std::move(done), now_);
  });
}

Result<std::uint64_t> RaftGroup::take_snapshot(Machine& machine) {
  return await<Result<std::uint64_t>>(
      *this, [&](auto done) { machine.store().take_snapshot(std::move(done), now_); });
}

// Machine ----------------------------------------------------------------------------------------

void RaftGroup::Machine::boot() {
  RaftStoreState state{.recovered = {.term = durable_.term,
                                     .voted_for = durable_.voted_for,
                                     .first = durable_.first,
                                     .entries = durable_.entries}};
  if (durable_.snapshot.has_value()) {
    state.machine = core::StateMachine(core::decode(*durable_.snapshot->body).value());
    state.snapshot_bytes = durable_.snapshot->body->size();
    state.recovered.snapshot = durable_.snapshot->mark;
  }
  store_ = std::make_unique<RaftStore>(options_, *this, std::move(state));
  store_->start(group_.now_);
}

void RaftGroup::Machine::crash() {
  store_.reset();
  writes_.clear();
  plan_.reset();
  is_drain_wanted_ = false;
  is_read_error_due_ = false;
}

void RaftGroup::Machine::work() {
  while (!is_disk_stuck && !writes_.empty() && writes_.front().due <= group_.now_) {
    persist(writes_.front());
    writes_.pop_front();
    store_->disk_done(1, group_.now_);
  }
  if (auto plan = std::exchange(plan_, std::nullopt)) {
    auto body = std::make_shared<const std::string>(core::encode(plan->image));
    if (!durable_.snapshot.has_value() || durable_.snapshot->mark.index < plan->mark.index) {
      durable_.snapshot = {.mark = plan->mark, .body = body};
      is_snapshot_unreadable = false;
    }
    store_->compacted(body->size(), group_.now_);
  }
  if (std::exchange(is_read_error_due_, false)) {
    store_->snapshot_unreadable({.code = Errc::invalid_argument, .detail = "It is torn."},
                                group_.now_);
  }
  if (std::exchange(is_drain_wanted_, false)) {
    store_->drain(group_.now_);
    store_->go_idle();
  }
  if (const auto deadline = store_->deadline(); deadline && *deadline <= group_.now_) {
    store_->timeout(group_.now_);
  }
}

void RaftGroup::Machine::propose(core::Command command, server::Store::Decision decided) {
  const auto bytes = encoded_size(command);
  Proposal proposal{.command = std::move(command), .decided = std::move(decided), .bytes = bytes};
  switch (store_->proposal_queue().push(proposal)) {
    case ProposalQueue::PushResult::queued: return;
    case ProposalQueue::PushResult::queued_first: drain_soon(); return;
    case ProposalQueue::PushResult::full:
    case ProposalQueue::PushResult::closed:
      proposal.decided(fail(Errc::unavailable, "closed"));
      return;
  }
}

void RaftGroup::Machine::save_vote(Term term, MemberId voted_for) {
  durable_.term = term;
  durable_.voted_for = voted_for;
}

void RaftGroup::Machine::append(Index first, const std::vector<Entry>& entries) {
  writes_.push_back({.install = std::nullopt,
                     .first = first,
                     .entries = entries,
                     .due = group_.now_ + group_.disk_delay});
}

void RaftGroup::Machine::install(const Snapshot& snapshot) {
  writes_.push_back(
      {.install = snapshot, .first = {}, .entries = {}, .due = group_.now_ + group_.disk_delay});
}

void RaftGroup::Machine::persist(const Write& write) {
  if (write.install.has_value()) {
    durable_.snapshot = *write.install;
    durable_.entries.clear();
    durable_.first = next(write.install->mark.index);
    return;
  }
  if (durable_.entries.empty()) {
    durable_.first = write.first;
  }
  durable_.entries.resize(write.first.get() - durable_.first.get());
  durable_.entries.insert(durable_.entries.end(), write.entries.begin(), write.entries.end());
}

core::StateMachine RaftGroup::Machine::restore(const Snapshot& snapshot,
                                               core::StateMachine /*before*/) {
  return core::StateMachine(core::decode(*snapshot.body).value());
}

void RaftGroup::Machine::cut(Index last) {
  while (!durable_.entries.empty() && durable_.first <= last) {
    durable_.entries.erase(durable_.entries.begin());
    durable_.first = next(durable_.first);
  }
}

void RaftGroup::Machine::compact(CompactionPlan plan) {
  EXPECT_FALSE(plan_.has_value()) << "one at a time";
  plan_ = std::move(plan);
}

DiskState RaftGroup::Machine::disk() const {
  if (const auto call = std::exchange(when_asked_for_disk, nullptr)) {
    call();
  }
  return {.space = space, .segment_bytes = 1 << 20};
}

void RaftGroup::Machine::send(MemberId peer, Message message) {
  EXPECT_TRUE(std::ranges::find(known, peer, &Member::id) != known.end() ||
              !std::holds_alternative<AppendEntries>(message))
      << "member " << id().get() << " does not know the address of member " << peer.get();
  group_.in_flight_.push_back({.from = id(),
                               .peer = peer,
                               .message = std::move(message),
                               .due = group_.now_ + milliseconds(1)});
}

void RaftGroup::Machine::send_snapshot(MemberId peer, Term term) {
  if (is_snapshot_unreadable) {
    is_read_error_due_ = true;
    return;
  }
  ++group_.snapshots_sent;
  send(peer, InstallSnapshot{.term = term, .snapshot = durable_.snapshot.value()});
}

std::optional<Versions> RaftGroup::Machine::versions_of(MemberId peer) const {
  const bool is_cut_off = group_.cut_off_.contains(id()) || group_.cut_off_.contains(peer);
  const bool is_known = std::ranges::find(known, peer, &Member::id) != known.end();
  const auto& machine = *group_.machines_.at(peer.get() - 1);
  return is_known && machine.is_up() && !is_cut_off ? std::optional(machine.options_.versions)
                                                    : std::nullopt;
}

void RaftGroup::Machine::report(log::Level /*level*/, std::string_view event, log::Fields fields) {
  reports.push_back(line_of(event, fields));
}

}  // namespace tenure::test
