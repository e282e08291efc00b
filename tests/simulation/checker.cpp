#include "simulation/checker.hpp"

#include <algorithm>
#include <string>
#include <string_view>

#include "core/invariants.hpp"
#include "support/core/cost.hpp"

namespace tenure::simulation {

using namespace server::raft;

namespace {

// Interval of checks of the whole state, which cost more than a command: every run checks hundreds.
constexpr std::size_t invariants_every = 16;

std::string name(MemberId member) {
  return "member " + std::to_string(member.get());
}

}  // namespace

void Checker::poll(MemberId member, const Replica& replica, const core::State& state,
                   Index& checked) {
  if (replica.role() == Role::leader) {
    check_leader(member, replica);
  }
  for (auto index = next(std::max(checked, Index{replica.log().first().get() - 1}));
       index <= replica.applied(); index = next(index)) {
    const auto* entry = replica.log().find(index);
    if (entry == nullptr) {
      continue;
    }
    const auto payload = std::hash<std::string_view>()(*entry->payload);
    const auto [it, is_first] = agreed_.try_emplace(
        index, Agreed{.term = entry->term, .payload = payload, .committed = replica.term()});
    if (it->second.term != entry->term || it->second.payload != payload) {
      world_.fail(name(member) + " applied another entry at " + std::to_string(index.get()) +
                  " than another member before");
    }
  }
  checked = std::max(checked, replica.applied());
  // Several entries can be applied in one event; only the state after the last one is visible.
  const auto [known, is_new] = revisions_.try_emplace(replica.applied(), state.revision);
  if (!is_new && known->second != state.revision) {
    world_.fail(name(member) + " has revision " + std::to_string(state.revision.get()) +
                " after entry " + std::to_string(replica.applied().get()) + ", others had " +
                std::to_string(known->second.get()));
  }
}

void Checker::check_leader(MemberId member, const Replica& replica) {
  const auto [leader, is_new] = leaders_.try_emplace(replica.term(), member);
  if (leader->second != member) {
    world_.fail(name(member) + " and " + name(leader->second) + " lead in term " +
                std::to_string(replica.term().get()));
  }
  if (!is_new) {
    return;
  }
  const auto first = replica.log().first();
  for (auto it = agreed_.lower_bound(first); it != agreed_.end(); ++it) {
    const auto* entry = replica.log().find(it->first);
    if (it->second.committed < replica.term() &&
        (entry == nullptr || entry->term != it->second.term)) {
      world_.fail(name(member) + " leads in term " + std::to_string(replica.term().get()) +
                  " and lacks the committed entry " + std::to_string(it->first.get()));
      return;
    }
  }
}

void Checker::on_snapshot(const Snapshot& snapshot) {
  const auto hash = std::hash<std::string_view>()(*snapshot.body);
  const auto [known, is_new] = snapshots_.try_emplace(snapshot.mark.index, hash);
  if (!is_new && known->second != hash) {
    world_.fail("two snapshots of entry " + std::to_string(snapshot.mark.index.get()) +
                " have different bytes");
  }
}

void Checker::on_applied(const core::Applied& applied, const core::State& state) {
  if (applied.revision <= newest_) {
    return;  // Another member applied it first.
  }
  newest_ = applied.revision;
  if (applied.visits > core::visits_max(state, applied)) {
    world_.fail("a step made " + std::to_string(applied.visits) + " visits in a state of size " +
                std::to_string(core::size_of(state, applied)));
  }
  if (applied.search_visits > core::search_visits_max(state, applied)) {
    world_.fail("the searches of one step made " + std::to_string(applied.search_visits) +
                " visits");
  }
  if (++applied_total_ % invariants_every == 0) {
    for (const auto& sentence : core::invariants::check(state)) {
      world_.fail("the state is broken: " + sentence);
    }
    for (const auto& sentence : core::invariants::check_no_deadlock(state)) {
      world_.fail("the state is broken: " + sentence);
    }
  }
  if (!world_.options().has_honest_clocks()) {
    return;
  }
  for (const auto& loss : applied.losses) {
    const auto lease = leases_.find(loss.lease);
    if (loss.why == core::EventType::expired && lease != leases_.end() && lease->second()) {
      world_.fail("lease " + std::to_string(loss.lease.get()) +
                  " expired while its client believes in it");
    }
  }
}

void Checker::on_acknowledged(core::Revision revision) {
  acknowledged_ = std::max(acknowledged_, revision);
}

void Checker::check_read(core::Revision known, core::Revision shown) {
  ++reads_;
  if (shown < known) {
    world_.fail("a read shows revision " + std::to_string(shown.get()) + ", and " +
                std::to_string(known.get()) + " was acknowledged before it was asked for");
  }
}

}  // namespace tenure::simulation
