#include "support/model/commands.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <ostream>
#include <string_view>

namespace tenure::model {

namespace {

constexpr std::uint64_t last_key = std::numeric_limits<std::uint64_t>::max();

std::string_view name_of(Verb verb) {
  constexpr std::array<std::string_view, 7> names{"try_acquire",  "request",     "cancel_wait",
                                                  "release",      "release_all", "downgrade",
                                                  "find_deadlock"};
  return names[static_cast<std::size_t>(verb)];
}

Thing keys(std::uint64_t space, std::uint64_t start, std::uint64_t end) {
  return KeysOf{.space = ResourceId{space}, .range = KeyRange::of(start, end).value()};
}

Thing bytes(const BytesRange& range) {
  return BytesOf{.space = ResourceId{1}, .range = range};
}

Answer answer_of(const Result<void>& result) {
  if (result) {
    return Answer::granted;
  }
  switch (result.error().code) {
    case Errc::would_block: return Answer::would_block;
    case Errc::deadlock: return Answer::deadlock;
    case Errc::not_held: return Answer::not_held;
    case Errc::invalid_argument: return Answer::invalid_argument;
    default: RC_FAIL("an answer that no command can have: " + to_string(result.error()));
  }
  return Answer::invalid_argument;
}

Answer answer_of(const RequestResult& acquisition) {
  RC_ASSERT(acquisition.error() == nullptr);
  if (acquisition.deadlock() != nullptr) {
    return Answer::deadlock;
  }
  return acquisition.is_granted() ? Answer::granted : Answer::waiting;
}

void expect_equal(Answer manager, Answer reference) {
  RC_LOG() << "manager " << to_string(manager) << ", reference " << to_string(reference) << '\n';
  RC_ASSERT(manager == reference);
}

bool is_among(std::span<const DeadlockReport> reports, const Deadlock& deadlock) {
  return std::ranges::any_of(
      reports, [&](const DeadlockReport& report) { return report.deadlock == deadlock; });
}

/// Whether the manager resolved a cycle through `txn`. A grant to a transaction that also waits
/// elsewhere may close others.
bool has_closed_one_of(std::span<const DeadlockReport> reports, TxnId txn) {
  return std::ranges::any_of(reports, [&](const DeadlockReport& report) {
    return std::ranges::count(report.deadlock.cycle, txn) > 0;
  });
}

TxnId youngest_of(const std::vector<TxnId>& cycle) {
  return *std::ranges::max_element(cycle);
}

/// Whether some member of the cycle is blocked by the queue order alone, in each of its waits.
bool could_be_granted_out_of_turn(const Reference& state, const std::vector<TxnId>& cycle) {
  for (std::size_t position = 0; position < cycle.size(); ++position) {
    const TxnId member = cycle[position];
    const TxnId next = cycle[(position + 1) % cycle.size()];
    const bool firmly = std::ranges::any_of(state.waits(), [&](const Wait& wait) {
      return wait.txn == member && !state.is_blocked_by_queue_only(wait) &&
             (state.holders_against(wait).contains(next) ||
              state.waiters_against(wait).contains(next));
    });
    if (!firmly) {
      return true;
    }
  }
  return false;
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const Command& command) {
  out << "T" << command.txn.get() << ' ' << name_of(command.verb);
  if (command.verb == Verb::try_acquire || command.verb == Verb::request ||
      command.verb == Verb::downgrade) {
    out << ' ' << to_string(command.mode);
  }
  if (command.verb != Verb::release_all && command.verb != Verb::cancel_wait &&
      command.verb != Verb::find_deadlock) {
    out << " on " << tenure::to_string(target_of(command.thing));
  }
  return out << '\n';
}

// What is drawn -----------------------------------------------------------------------------------

std::vector<Thing> two_numbers() {
  return {ResourceId{0}, ResourceId{last_key}};
}

std::vector<Thing> three_names() {
  return {std::string("a"), std::string("a/b"), std::string("\0\xFF", 2)};
}

std::vector<Thing> some_keys() {
  return {keys(1, 2, 5),
          keys(1, 5, 9),
          keys(1, 3, 3),
          keys(1, 6, 6),
          keys(1, 0, last_key),
          keys(1, 10, last_key),
          keys(1, last_key, last_key),
          keys(2, 2, 5)};
}

std::vector<Thing> some_bytes() {
  return {bytes(BytesRange::of("b", "e").value()),
          bytes(BytesRange::prefix("e")),
          bytes(BytesRange::point("c")),
          bytes(BytesRange::half_open("a", "b").value()),
          bytes(BytesRange::all()),
          bytes(BytesRange::at_least("\xFF\xFF")),
          bytes(BytesRange::prefix("\xFF\xFF\xFF"))};
}

std::vector<Thing> one_of_each_kind() {
  return {ResourceId{1},
          std::string("1"),
          keys(1, 1, 4),
          keys(1, 4, 8),
          bytes(BytesRange::prefix("1")),
          bytes(BytesRange::all())};
}

std::vector<std::pair<std::size_t, Verb>> all_verbs() {
  return {{4, Verb::try_acquire}, {6, Verb::request},     {1, Verb::cancel_wait},
          {4, Verb::release},     {1, Verb::release_all}, {1, Verb::downgrade}};
}

rc::Gen<std::vector<Command>> commands_in(const World& world) {
  std::vector<Verb> verbs;  // each as often as it weighs
  for (const auto& [encoded_size, verb] : world.verbs) {
    verbs.insert(verbs.end(), encoded_size, verb);
  }
  const auto one = rc::gen::apply(
      [world, verbs](std::size_t verb, std::size_t txn, std::size_t thing, std::size_t mode) {
        return Command{.verb = verbs[verb],
                       .txn = TxnId{txn + 1},
                       .thing = world.things[thing],
                       .mode = world.modes[mode]};
      },
      rc::gen::inRange<std::size_t>(0, verbs.size()), rc::gen::inRange<std::size_t>(0, world.txns),
      rc::gen::inRange<std::size_t>(0, world.things.size()),
      rc::gen::inRange<std::size_t>(0, world.modes.size()));
  return rc::gen::container<std::vector<Command>>(one);
}

// What is run -------------------------------------------------------------------------------------

Comparison::Comparison(const World& world)
    : world_(world),
      manager_({.shards = 4, .detection = world.detection, .deadlocks_kept = 100'000}) {}

void Comparison::run(const std::vector<Command>& commands) {
  for (const Command& command : commands) {
    if (is_documented(command)) {
      RC_LOG() << command;
      step(command);
      compare_counts();
      compare_snapshot();
    }
  }
}

/// What a transaction does to a thing while a request of its own for the same keys is pending is
/// documented for a repeated request, a cancellation, a release, and a count on a granted lock; the
/// rest is left to the manager.
bool Comparison::is_documented(const Command& command) const {
  const auto [verb, txn, thing, mode] = command;
  if (verb == Verb::cancel_wait || verb == Verb::release_all || verb == Verb::find_deadlock) {
    return true;
  }
  if (verb == Verb::release) {
    return !reference_.has_unclaimed(txn, thing);
  }
  if (verb == Verb::try_acquire && !is_range(thing) && reference_.has_unclaimed(txn, thing)) {
    return covers(reference_.mode_held(txn, thing).value(), mode);
  }
  const bool pending_near = std::ranges::any_of(world_.things, [&](const Thing& other) {
    return share_a_key(thing, other) && reference_.is_pending(txn, other);
  });
  return !pending_near || (verb == Verb::request && reference_.is_pending(txn, thing));
}

void Comparison::step(const Command& command) {
  const auto [verb, txn, thing, mode] = command;
  const Target target = target_of(command.thing);
  switch (verb) {
    case Verb::try_acquire: step_try_acquire(command); return;
    case Verb::request: step_request(command); return;
    case Verb::cancel_wait:
      manager_.cancel_wait(txn);
      reference_.cancel_wait(txn);
      return;
    case Verb::release:
      expect_equal(answer_of(manager_.release(txn, target)), reference_.release(txn, thing));
      return;
    case Verb::release_all:
      RC_ASSERT(manager_.release_all(txn) == reference_.release_all(txn));
      return;
    case Verb::downgrade:
      expect_equal(answer_of(manager_.downgrade(txn, target, mode)),
                   reference_.downgrade(txn, thing, mode));
      return;
    case Verb::find_deadlock: step_find_deadlock(); return;
  }
}

void Comparison::step_try_acquire(const Command& command) {
  const std::size_t reports_before = manager_.recent_deadlocks().size();

  const auto answer = manager_.try_acquire(command.txn, target_of(command.thing), command.mode);

  expect_equal(answer_of(answer), reference_.try_acquire(command.txn, command.thing, command.mode));
  if (answer && world_.detection == Detection::at_wait) {
    // A transaction that waits elsewhere may close a cycle by what it acquires now.
    follow(Left::no_cycle, reports_before);
  }
}

void Comparison::step_request(const Command& command) {
  const auto [verb, txn, thing, mode] = command;
  const bool was_victim = reference_.is_victim(txn);
  const std::size_t reports_before = manager_.recent_deadlocks().size();

  const RequestResult acquisition = manager_.request(txn, target_of(command.thing), mode);
  const Answer answer = reference_.request(txn, thing, mode);

  if (was_victim || world_.detection == Detection::on_demand) {
    expect_equal(answer_of(acquisition), answer);
    return;
  }
  follow(Left::no_cycle, reports_before);
  const auto reports = manager_.recent_deadlocks();
  if (answer == Answer::granted) {
    expect_equal(answer_of(acquisition), Answer::granted);
  } else if (has_closed_one_of(std::span(reports).subspan(reports_before), txn)) {
    expect_equal(answer_of(acquisition), Answer::deadlock);
    RC_ASSERT(is_among(std::span(reports).subspan(reports_before), *acquisition.deadlock()));
    RC_ASSERT(reference_.is_victim(txn) == (acquisition.deadlock()->victim == txn));
    if (reference_.is_victim(txn)) {
      reference_.mark_notified(txn);
    }
  } else if (reference_.has_unclaimed(txn, thing)) {
    expect_equal(answer_of(acquisition), reference_.request(txn, thing, mode));
  } else {
    expect_equal(answer_of(acquisition), Answer::waiting);
  }
}

void Comparison::step_find_deadlock() {
  const std::size_t reports_before = manager_.recent_deadlocks().size();

  const auto found = manager_.find_deadlock();

  follow(Left::anything, reports_before);
  const auto reports = manager_.recent_deadlocks();
  if (found) {
    RC_ASSERT(is_among(std::span(reports).subspan(reports_before), *found));
  } else {
    RC_ASSERT(reports.size() == reports_before);
    RC_ASSERT(!has_cycle(reference_.waits_for()));
  }
}

/// Brings the reference to the state the manager chose, if the documentation allows that choice.
void Comparison::follow(Left left, std::size_t reports_before) {
  const auto reports = manager_.recent_deadlocks();
  auto state = explain(reference_, std::span(reports).subspan(reports_before), left,
                       waiters_of(manager_.snapshot()));
  if (!state) {
    RC_LOG() << to_string(manager_.snapshot());
    for (const DeadlockReport& report : std::span(reports).subspan(reports_before)) {
      RC_LOG() << to_string(report) << '\n';
    }
  }
  RC_ASSERT(state.has_value());
  reference_ = std::move(*state);
}

/// Searches for an order in which the reported victims, and the waiters that are gone from the
/// queues, could lawfully be chosen one after the other, until nothing is left to resolve.
std::optional<Reference> Comparison::explain(const Reference& state,
                                             std::span<const DeadlockReport> reports, Left left,
                                             const Waiters& waiters) const {
  const Edges edges = state.waits_for();
  const bool resolved = left == Left::anything || !has_cycle(edges);
  if (reports.empty() && resolved && waiters_of(state) == waiters && holds_as(state)) {
    return state;
  }
  if (!reports.empty()) {
    const Deadlock& deadlock = reports.front().deadlock;
    const bool lawful = is_cycle(edges, deadlock.cycle) &&
                        deadlock.victim == youngest_of(deadlock.cycle) &&
                        !could_be_granted_out_of_turn(state, deadlock.cycle);
    if (lawful) {
      Reference next = state;
      next.make_victim(deadlock.victim);
      if (auto explained = explain(next, reports.subspan(1), left, waiters)) {
        return explained;
      }
    }
  }
  for (const Wait& wait : state.waits()) {
    const bool gone = !waiters.contains({tenure::to_string(target_of(wait.thing)), wait.txn});
    if (gone && state.is_blocked_by_queue_only(wait) && is_on_cycle(edges, wait.txn)) {
      Reference next = state;
      next.grant(wait);
      if (auto explained = explain(next, reports, left, waiters)) {
        return explained;
      }
    }
  }
  return std::nullopt;
}

bool Comparison::holds_as(const Reference& state) const {
  for (const Thing& thing : world_.things) {
    for (std::size_t txn = 1; txn <= world_.txns; ++txn) {
      if (manager_.mode_held(TxnId{txn}, target_of(thing)) != state.mode_held(TxnId{txn}, thing)) {
        return false;
      }
    }
  }
  return manager_.range_count(ResourceId{1}) == state.range_count(ResourceId{1});
}

Comparison::Waiters Comparison::waiters_of(const Reference& state) const {
  Waiters waiters;
  for (const Wait& wait : state.waits()) {
    waiters.emplace(tenure::to_string(target_of(wait.thing)), wait.txn);
  }
  return waiters;
}

Comparison::Waiters Comparison::waiters_of(const LockSnapshot& snapshot) const {
  Waiters waiters;
  for (const LockView& lock : snapshot.locks) {
    for (const WaiterView& waiter : lock.waiters) {
      waiters.emplace(lock.target, waiter.txn);
    }
  }
  return waiters;
}

// What is compared --------------------------------------------------------------------------------

void Comparison::compare_counts() const {
  for (const Thing& thing : world_.things) {
    const Target target = target_of(thing);
    RC_ASSERT(manager_.holder_count(target) == reference_.holder_count(thing));
    for (std::size_t txn = 1; txn <= world_.txns; ++txn) {
      const auto held = manager_.mode_held(TxnId{txn}, target);
      if (held != reference_.mode_held(TxnId{txn}, thing)) {
        RC_LOG() << "T" << txn << " holds " << (held ? tenure::to_string(*held) : "nothing")
                 << " on " << tenure::to_string(target) << '\n';
      }
      RC_ASSERT(held == reference_.mode_held(TxnId{txn}, thing));
    }
  }
  RC_ASSERT(manager_.range_count(ResourceId{1}) == reference_.range_count(ResourceId{1}));
  RC_ASSERT(manager_.range_count(ResourceId{2}) == reference_.range_count(ResourceId{2}));
  RC_ASSERT(manager_.waiting_count() == reference_.waiting_count());
}

/// Compares queue order and hold counts, and checks the law that does not depend on the reference:
/// no two transactions hold the same key in modes that exclude each other.
void Comparison::compare_snapshot() const {
  const LockSnapshot snapshot = manager_.snapshot();
  std::vector<Hold> holds;
  for (const Thing& thing : world_.things) {
    const std::string name = tenure::to_string(target_of(thing));
    std::vector<TxnId> queue;
    for (const LockView& lock : snapshot.locks) {
      if (lock.target != name) {
        continue;
      }
      for (const HolderView& holder : lock.holders) {
        holds.push_back({holder.txn, thing, holder.mode, holder.count});
      }
      for (const WaiterView& waiter : lock.waiters) {
        queue.push_back(waiter.txn);
      }
    }
    std::vector<TxnId> expected;
    for (const Wait& wait : reference_.waits()) {
      if (same(wait.thing, thing)) {
        expected.push_back(wait.txn);
      }
    }
    RC_ASSERT(queue == expected);
  }
  compare_holds(holds);
}

void Comparison::compare_holds(const std::vector<Hold>& holds) const {
  for (const Hold& expected : reference_.holds()) {
    const bool is_shown = std::ranges::any_of(holds, [&](const Hold& hold) {
      return hold.txn == expected.txn && same(hold.thing, expected.thing) &&
             hold.mode == expected.mode && hold.count == expected.count;
    });
    RC_ASSERT((is_shown || is_range(expected.thing)));
  }
  for (const Hold& one : holds) {
    for (const Hold& other : holds) {
      const bool may_conflict = one.txn != other.txn && share_a_key(one.thing, other.thing);
      RC_ASSERT((!may_conflict || compatible_with(one.mode, other.mode)));
    }
  }
}

}  // namespace tenure::model
