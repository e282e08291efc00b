#include "lock_manager/detector.hpp"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include <tenure/lock_manager/wait_for_graph.hpp>

namespace tenure::detail {

namespace {

/// Chooses a victim by a built-in policy; among equals, the youngest.
TxnId choose_by(VictimPolicy policy, const std::vector<DeadlockMember>& members) {
  const auto rank = [policy](const DeadlockMember& member) -> std::uint64_t {
    switch (policy) {
      case VictimPolicy::youngest: return 0;
      case VictimPolicy::oldest: return member.age;
      case VictimPolicy::fewest_locks: return member.locks;
      case VictimPolicy::most_locks: return ~std::uint64_t{member.locks};
      case VictimPolicy::least_work: return member.work;
      case VictimPolicy::lowest_priority:
        // Flipping the sign bit orders signed numbers as unsigned ones.
        return static_cast<std::uint32_t>(member.priority) ^ 0x8000'0000U;
    }
    return 0;
  };
  return std::ranges::min_element(members,
                                  [&](const DeadlockMember& a, const DeadlockMember& b) {
                                    return rank(a) != rank(b) ? rank(a) < rank(b) : a.age > b.age;
                                  })
      ->txn;
}

bool is_member(const std::vector<TxnId>& cycle, TxnId txn) {
  return std::ranges::find(cycle, txn) != cycle.end();
}

std::vector<TxnId> cycle_of(const std::vector<DeadlockMember>& members) {
  std::vector<TxnId> cycle;
  std::ranges::transform(members, std::back_inserter(cycle), &DeadlockMember::txn);
  return cycle;
}

}  // namespace

Detector::Detector(Transactions& txns, const LockManagerOptions& options)
    : txns_(txns),
      policy_(options.victim),
      choose_(options.choose_victim),
      kept_max_(options.deadlocks_kept) {}

// While transactions run, each one is latched for the visit alone, so edges may be stale by the end
// of the search. Frozen transactions are latched already.
void Detector::visit(TxnId txn, Mode mode, const auto& use) {
  if (mode == Mode::frozen) {
    if (Txn* const found = txns_.find(txn); found != nullptr) {
      use(*found);
    }
  } else if (const auto entered = txns_.enter_for_search(txn); entered) {
    use(*entered);
  }
}

std::optional<TxnId> Detector::find_closing_member(TxnId start, Mode mode) {
  // Breadth first, so that the reported cycle is a shortest one. Visited transactions are marked in
  // their records, which is why only one search runs at a time.
  const std::uint64_t search = ++searches_;
  struct Step {
    TxnId txn;
    TxnId from;
  };
  std::vector<Step> steps{{.txn = start, .from = start}};
  std::vector<TxnId> blockers;
  for (std::size_t next = 0; next < steps.size(); ++next) {
    const Step here = steps[next];
    blockers.clear();
    visit(here.txn, mode, [&](Txn& txn) {
      if (std::exchange(txn.search, search) == search) {
        return;
      }
      txn.reached_from = here.from;
      for (const Waiter* const waiter : txn.waits) {
        waiter->table->blockers_of(*waiter, blockers);
      }
    });
    for (const TxnId blocker : blockers) {
      if (blocker == start) {
        return here.txn;
      }
      steps.push_back({.txn = blocker, .from = here.txn});
    }
  }
  return std::nullopt;
}

// Follows the predecessors that the search has marked, from the closing member back to `start`.
Detector::Cycle Detector::find_cycle_frozen(TxnId start) {
  const auto closer = find_closing_member(start, Mode::frozen);
  if (!closer) {
    return {};
  }
  Cycle cycle{*closer};
  while (cycle.back() != start) {
    cycle.push_back(txns_.find(cycle.back())->reached_from);
  }
  std::ranges::reverse(cycle);
  return cycle;
}

// Usually one search without a result. A suspected cycle is verified and resolved with all
// transactions stopped; this is repeated, because one new wait can close several cycles, and a
// grant out of turn can close another one. The custom policy runs without the mutex, since it is
// user code.
Detector::Resolution Detector::check(TxnId start, std::optional<VictimPolicy> policy) {
  std::unique_lock searching(search_mutex_);
  Resolution resolution;
  CheckState state{.start = start, .policy = policy, .suspects = {start}};
  while (!state.suspects.empty()) {
    const TxnId suspect = state.suspects.front();
    std::vector<DeadlockMember> undecided;
    const bool is_clear = !find_closing_member(suspect, Mode::running) ||
                          !resolve_frozen(state, resolution, undecided);
    if (is_clear) {
      state.suspects.pop_front();
    } else if (!undecided.empty()) {
      searching.unlock();
      state.proposed = choose_(undecided);
      state.proposed_for = cycle_of(undecided);
      ++state.proposals;
      searching.lock();
    }
  }
  return resolution;
}

// Prefers a grant out of turn to a victim: a cycle that contains an edge by queue order only is no
// conflict of modes, and no transaction has to be rolled back.
bool Detector::resolve_frozen(CheckState& state, Resolution& resolution,
                              std::vector<DeadlockMember>& undecided) {
  Wakes wakes;
  const Transactions::Freeze freeze(txns_);
  const Cycle cycle = find_cycle_frozen(state.suspects.front());
  if (cycle.empty()) {
    return false;
  }
  if (const auto admitted = admit_one(cycle, wakes); admitted) {
    // The transaction may wait elsewhere, and the waiters that it overtook now wait for it.
    resolution.admitted = true;
    state.suspects.push_back(*admitted);
    return true;
  }
  std::vector<DeadlockMember> members = members_of(cycle);
  const auto victim = decide(members, state);
  if (!victim) {
    undecided = std::move(members);
    return true;
  }
  const Deadlock deadlock{.victim = *victim, .cycle = cycle};
  abort_victim(deadlock, wakes);
  remember(deadlock, std::move(members));
  if (state.suspects.front() != state.start) {
    resolution.elsewhere = deadlock;
  } else if (!resolution.deadlock || *victim == state.start) {
    resolution.deadlock = deadlock;
  }
  return true;
}

std::optional<TxnId> Detector::decide(const std::vector<DeadlockMember>& members,
                                      const CheckState& state) const {
  // The custom policy runs without a latch, so the cycle may change before it returns. After this
  // number of calls, the youngest becomes the victim.
  constexpr int proposals_max = 8;
  if (!choose_) {
    return choose_by(state.policy.value_or(policy_), members);
  }
  const Cycle cycle = cycle_of(members);
  if (state.proposed_for != cycle && state.proposals < proposals_max) {
    return std::nullopt;
  }
  const bool is_sound = state.proposed_for == cycle && is_member(cycle, state.proposed);
  return is_sound ? state.proposed : choose_by(VictimPolicy::youngest, members);
}

// Searches a copy of the graph first, which latches one stripe at a time. Only a cycle in the copy
// is checked further.
std::optional<Deadlock> Detector::check_all() {
  for (;;) {
    WaitForGraph graph;
    std::vector<TxnId> blockers;
    txns_.visit([&](const Txn& txn) {
      blockers.clear();
      for (const Waiter* const waiter : txn.waits) {
        waiter->table->blockers_of(*waiter, blockers);
      }
      graph.add_waits(txn.id, blockers);
    });
    const auto cycle = graph.detect_cycle();
    if (!cycle) {
      return std::nullopt;
    }
    const Resolution resolution = check(cycle->front(), std::nullopt);
    if (resolution.deadlock || resolution.elsewhere) {
      return resolution.deadlock ? resolution.deadlock : resolution.elsewhere;
    }
  }
}

/// The wait of `txn` that `next` blocks; null if there is none. A transaction may have several
/// waits, one per thread.
Waiter* Detector::edge_of(Txn& txn, TxnId next) {
  std::vector<TxnId> blockers;
  for (Waiter* const waiter : txn.waits) {
    blockers.clear();
    waiter->table->blockers_of(*waiter, blockers);
    if (is_member(blockers, next)) {
      return waiter;
    }
  }
  return nullptr;
}

std::optional<TxnId> Detector::admit_one(const Cycle& cycle, Wakes& wakes) {
  for (std::size_t i = 0; i < cycle.size(); ++i) {
    Waiter* const waiter = edge_of(*txns_.find(cycle[i]), cycle[(i + 1) % cycle.size()]);
    if (waiter->table->admit_out_of_turn(*waiter, wakes)) {
      return cycle[i];
    }
  }
  return std::nullopt;
}

std::vector<DeadlockMember> Detector::members_of(const Cycle& cycle) {
  std::vector<DeadlockMember> members;
  members.reserve(cycle.size());
  for (std::size_t i = 0; i < cycle.size(); ++i) {
    Txn& txn = *txns_.find(cycle[i]);
    const Waiter& waiter = *edge_of(txn, cycle[(i + 1) % cycle.size()]);
    members.push_back({.txn = txn.id,
                       .age = txn.age,
                       .locks = txn.lock_count,
                       .work = txn.work,
                       .priority = txn.priority,
                       .waits_for = std::string(to_string(waiter.mode)) + " on " +
                                    waiter.table->describe(waiter)});
  }
  return members;
}

// Ends all waits of the victim, also those outside of the cycle: its threads have to return, so
// that the transaction can release its locks.
void Detector::abort_victim(const Deadlock& deadlock, Wakes& wakes) {
  Txn& victim = *txns_.find(deadlock.victim);
  victim.verdict = std::make_shared<const Deadlock>(deadlock);
  // A blocked thread gets the error from its call. A transaction that only polls by request()
  // gets it from its next call.
  victim.notified = victim.requests.size() < victim.waits.size();
  const auto waits = victim.waits;
  for (Waiter* const waiter : waits) {
    if (!waiter->is_pending()) {
      continue;
    }
    waiter->verdict = victim.verdict;
    waiter->table->leave(*waiter, WaitState::deadlock, wakes);
    victim.drop_request(*waiter);
  }
}

void Detector::remember(Deadlock deadlock, std::vector<DeadlockMember> members) {
  const std::lock_guard lock(recent_mutex_);
  recent_.push_back({.deadlock = std::move(deadlock),
                     .members = std::move(members),
                     .resolved_at = std::chrono::system_clock::now()});
  while (recent_.size() > kept_max_) {
    recent_.pop_front();
  }
}

std::vector<DeadlockReport> Detector::recent() const {
  const std::lock_guard lock(recent_mutex_);
  return {recent_.begin(), recent_.end()};
}

}  // namespace tenure::detail
