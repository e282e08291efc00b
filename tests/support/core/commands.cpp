#include "support/core/commands.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <iterator>
#include <ostream>
#include <set>
#include <utility>

#include "core/invariants.hpp"
#include "core/restore.hpp"
#include "core/snapshot.hpp"
#include "support/core/cost.hpp"

namespace tenure::core::model {
namespace {

using std::chrono::milliseconds;

constexpr std::array verb_names{
    "acquire", "try_acquire", "release_token", "release_target", "abandon", "grant_lease",
    "renew",   "revoke",      "force",         "compact",        "tick",    "downgrade",
    "set_ttl", "confirm",     "set_limits",    "set_version",    "restore"};

Item whole(std::string name) {
  return {.name = std::move(name), .claim = Whole{}};
}
Item permits(std::string name) {
  return {.name = std::move(name), .claim = Permits{.capacity = 3, .wanted = 1}};
}
Item keys(std::string name, BytesRange range) {
  return {.name = std::move(name), .claim = Keys{.range = std::move(range)}};
}

std::vector<Item> items_of(const Draw& draw, const World& world) {
  auto items = world.things[draw.thing % world.things.size()];
  auto pick = draw.pick;
  for (auto& item : items) {
    const auto mode = world.modes[pick % world.modes.size()];
    if (auto* some = std::get_if<Permits>(&item.claim)) {
      some->wanted = static_cast<std::uint32_t>(1 + pick % some->capacity);
    } else if (auto* range = std::get_if<Keys>(&item.claim)) {
      range->mode = mode;
    } else {
      std::get<Whole>(item.claim).mode = mode;
    }
    pick += 5;
  }
  return items;
}

/// Usually the token of an existing hold, sometimes of none.
FencingToken token_of(const Draw& draw, const State& state) {
  const auto& holds = state.locks.holds();
  const auto index = draw.pick % (holds.size() + 1);
  return index == holds.size()
             ? FencingToken{draw.pick}
             : std::next(holds.begin(), static_cast<std::ptrdiff_t>(index))->first;
}

/// `first` is the first of the ids for one kind of request.
RequestId request_of(const Draw& draw, const World& world, const State& state,
                     std::uint64_t first) {
  return RequestId{world.has_retries ? first + draw.request : 10'000 + state.revision.get()};
}
RequestId request_or_none(const Draw& draw, const World& world, const State& state,
                          std::uint64_t first) {
  return draw.request % 3 == 0 ? RequestId{} : request_of(draw, world, state, first);
}

Command acquire(const Draw& draw, const World& world, const State& state, Queue queue) {
  Acquire command{.lease = LeaseId{1 + draw.lease},
                  .request = request_of(draw, world, state, 1),
                  .items = items_of(draw, world),
                  .queue = queue,
                  .self_conflict = draw.self_conflict,
                  .owner = "owner " + std::to_string(draw.lease),
                  .metadata = std::string(draw.pick % 3, 'm')};
  if (command.self_conflict == SelfConflict::reenter &&
      (command.items.size() > 1 || std::holds_alternative<Permits>(command.items[0].claim))) {
    command.self_conflict = SelfConflict::wait;
  }
  return command;
}

Command release_target(const Draw& draw, const World& world, const State& state) {
  const auto item = items_of(draw, world).front();
  const auto* range = std::get_if<Keys>(&item.claim);
  return Release{
      .lease = LeaseId{1 + draw.lease},
      .request = request_or_none(draw, world, state, 1),
      .what = Target{
          .name = item.name,
          .range = range == nullptr ? std::nullopt : std::optional<BytesRange>(range->range)}};
}

/// Usually a request that waits, sometimes one that has ended or never existed.
Command abandon(const Draw& draw, const World& world, const State& state) {
  const auto& waits = state.locks.waits();
  const auto index = draw.pick % (waits.size() + 1);
  if (index == waits.size()) {
    return Abandon{.lease = LeaseId{1 + draw.lease}, .request = request_of(draw, world, state, 1)};
  }
  const auto& wait = *std::next(waits.begin(), static_cast<std::ptrdiff_t>(index))->second;
  return Abandon{.lease = wait.lease, .request = wait.request};
}

/// Usually of an existing hold by its holder, to a random mode.
Command downgrade(const Draw& draw, const World& world, const State& state) {
  const auto token = token_of(draw, state);
  const auto* hold = state.locks.find(token);
  return Downgrade{
      .lease = hold != nullptr && draw.request % 8 != 0 ? hold->lease : LeaseId{1 + draw.lease},
      .request = request_or_none(draw, world, state, 2000),
      .token = token,
      .mode = world.modes[draw.thing % world.modes.size()]};
}

Command grant_lease(const Draw& draw) {
  constexpr std::array users{"", "ann", "bob"};
  return GrantLease{.id = LeaseId{draw.pick % 4 == 0 ? 0 : 1 + draw.lease},
                    .request = RequestId{draw.request % 4},
                    .ttl = milliseconds(500 + 100 * (draw.pick % 3)),
                    .client = draw.pick % 2 == 0 ? "client" : "",
                    .address = "here",
                    .user = users[draw.pick % users.size()]};
}

/// Usually the holds of the lease, sometimes fewer, one twice, or others.
Command confirm(const Draw& draw, const State& state) {
  const LeaseId lease{1 + draw.lease};
  const auto& holds = state.locks.owned(lease).holds;
  ConfirmHolds command{.lease = lease, .tokens = {holds.begin(), holds.end()}};
  switch (draw.pick % 8) {
    case 0: command.tokens.push_back(token_of(draw, state)); break;
    case 1: command.tokens.insert(command.tokens.end(), holds.begin(), holds.end()); break;
    case 2: command.tokens.clear(); break;
    case 3: command.tokens.resize(command.tokens.size() / 2); break;
    default: break;
  }
  return command;
}

/// Quotas of about what a few holds take, and those that are never reached.
Command set_limits(const Draw& draw) {
  constexpr std::array<std::size_t, 5> totals{std::size_t{1} << 30, 6000, 4000, 3000, 0};
  constexpr std::array<std::size_t, 4> shares{std::size_t{1} << 28, 3000, 2000, 1000};
  return SetLimits{{.state_bytes_max = totals[draw.pick % totals.size()],
                    .state_bytes_per_user_max = shares[draw.request % shares.size()]}};
}

Command set_version(const Draw& draw) {
  constexpr std::array<std::uint64_t, 5> versions{1, 2, 2, 3, 0};
  return SetClusterVersion{ClusterVersion{versions[draw.pick % versions.size()]}};
}

Command command_of(const Draw& draw, const World& world, const State& state) {
  const LeaseId lease{1 + draw.lease};
  switch (draw.verb) {
    case Verb::acquire: return acquire(draw, world, state, Queue::wait);
    case Verb::try_acquire: return acquire(draw, world, state, Queue::skip);
    case Verb::release_token: {
      const auto token = token_of(draw, state);
      const auto* hold = state.locks.find(token);
      return Release{.lease = hold != nullptr && draw.request % 8 != 0 ? hold->lease : lease,
                     .request = request_or_none(draw, world, state, 1000),
                     .what = token};
    }
    case Verb::release_target: return release_target(draw, world, state);
    case Verb::abandon: return abandon(draw, world, state);
    case Verb::grant_lease: return grant_lease(draw);
    case Verb::renew: return RenewLeases{{lease, LeaseId{1 + draw.pick % world.leases}}};
    case Verb::revoke: return RevokeLease{lease};
    case Verb::force: {
      const auto resource = items_of(draw, world).front().resource();
      return ForceRelease{
          .resource = resource,
          .token = draw.request % 2 == 0 ? std::nullopt : std::optional(token_of(draw, state))};
    }
    case Verb::compact: return Compact{Revision{state.revision.get() * (draw.pick % 4) / 3}};
    case Verb::downgrade: return downgrade(draw, world, state);
    case Verb::set_ttl:
      return SetTtl{.lease = lease,
                    .request = request_or_none(draw, world, state, 3000),
                    .ttl = milliseconds(100 + 300 * (draw.pick % 4))};
    case Verb::confirm: return confirm(draw, state);
    case Verb::set_limits: return set_limits(draw);
    case Verb::set_version: return set_version(draw);
    case Verb::restore:
    case Verb::tick: break;
  }
  return Tick{};
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const Draw& draw) {
  return out << "\n{" << verb_names[static_cast<std::size_t>(draw.verb)] << ", lease " << draw.lease
             << ", request " << draw.request << ", pick " << draw.pick << ", thing " << draw.thing
             << ", pause " << draw.pause << ", again " << static_cast<int>(draw.self_conflict)
             << "}";
}

std::vector<std::vector<Item>> names() {
  return {{whole("a")}, {whole("b")}, {whole("c")}};
}

std::vector<std::vector<Item>> ranges() {
  return {{keys("a", *BytesRange::half_open("b", "d"))},
          {keys("a", *BytesRange::half_open("c", "e"))},
          {keys("a", BytesRange::point("c"))},
          {keys("a", BytesRange::at_least("d"))},
          {keys("b", BytesRange::all())}};
}

std::vector<std::vector<Item>> semaphores() {
  return {{permits("s")}, {permits("t")}};
}

std::vector<std::vector<Item>> several_at_once() {
  return {{whole("b"), whole("a")},
          {whole("a")},
          {whole("b")},
          {whole("b"), permits("s")},
          {permits("s")},
          {keys("a", *BytesRange::half_open("b", "c")), keys("a", BytesRange::at_least("d")),
           whole("a")},
          {keys("a", *BytesRange::half_open("a", "c"))}};
}

std::vector<std::vector<Item>> everything() {
  auto all = names();
  for (const auto& more : {ranges(), semaphores(), several_at_once()}) {
    all.insert(all.end(), more.begin(), more.end());
  }
  all.push_back({whole("s")});  // is a semaphore elsewhere
  return all;
}

std::vector<std::pair<std::size_t, Verb>> all_verbs() {
  return {{12, Verb::acquire},       {3, Verb::try_acquire}, {6, Verb::release_token},
          {3, Verb::release_target}, {2, Verb::abandon},     {3, Verb::grant_lease},
          {4, Verb::renew},          {1, Verb::revoke},      {1, Verb::force},
          {1, Verb::compact},        {1, Verb::tick},        {4, Verb::downgrade},
          {2, Verb::set_ttl},        {1, Verb::confirm},     {1, Verb::set_version}};
}

std::vector<std::pair<std::size_t, Verb>> all_verbs_and(std::initializer_list<Verb> more) {
  auto verbs = all_verbs();
  for (const auto verb : more) {
    verbs.emplace_back(3, verb);
  }
  return verbs;
}

std::vector<std::pair<std::size_t, Verb>> mostly_waiting() {
  return {{12, Verb::acquire}, {2, Verb::release_token}, {1, Verb::abandon}, {2, Verb::downgrade}};
}

rc::Gen<std::vector<Draw>> draws_in(const World& world) {
  std::vector<Verb> verbs;
  for (const auto& [encoded_size, verb] : world.verbs) {
    verbs.insert(verbs.end(), encoded_size, verb);
  }
  const auto one = rc::gen::apply(
      [verbs, self_conflicts = world.self_conflicts](
          std::size_t verb, std::size_t lease, std::size_t request, std::size_t pick,
          std::size_t thing, std::size_t pause, std::size_t again) {
        return Draw{.verb = verbs[verb],
                    .lease = lease,
                    .request = request,
                    .pick = pick,
                    .thing = thing,
                    .pause = pause,
                    .self_conflict = self_conflicts[again]};
      },
      rc::gen::inRange<std::size_t>(0, verbs.size()),
      rc::gen::inRange<std::size_t>(0, world.leases),
      rc::gen::inRange<std::size_t>(0, world.requests), rc::gen::inRange<std::size_t>(0, 1000),
      rc::gen::inRange<std::size_t>(0, world.things.size()),
      rc::gen::inRange<std::size_t>(0, world.pauses),
      rc::gen::inRange<std::size_t>(0, world.self_conflicts.size()));
  return rc::gen::container<std::vector<Draw>>(one);
}

Move move_of(const Draw& draw, const World& world, const State& state) {
  // Backwards too: a stamp from before the last one counts as the last one.
  constexpr std::array pauses{0, 1, 20, -50, 100, 350};
  const auto pause = milliseconds(pauses[draw.pause % pauses.size()]);
  const auto time = std::max(ClusterTime{}, state.now + pause);
  const Revision floor{draw.pick == 999 ? state.revision.get() + 10 : 0};
  return {.command = command_of(draw, world, state), .stamp = {.time = time, .revision = floor}};
}

void grant_leases(const World& world, StateMachine& machine, Reference* reference) {
  for (std::size_t i = 1; i <= world.leases; ++i) {
    const GrantLease command{.id = LeaseId{i}, .ttl = milliseconds(500), .client = "client"};
    const auto applied = machine.apply(command, {});
    if (reference != nullptr) {
      (void)reference->step(command, {}, applied);
    }
  }
}

void assert_sound(const State& state) {
  RC_ASSERT(invariants::check(state) == std::vector<std::string>{});
  RC_ASSERT(invariants::check_no_deadlock(state) == std::vector<std::string>{});
}

StateMachine restored(const State& state, ClusterTime longest_ttl) {
  auto backup = decode(encode(state));
  RC_ASSERT(backup.has_value());
  begin_restoration(*backup, longest_ttl);
  assert_sound(*backup);
  return StateMachine(*std::move(backup));
}

void compare(const World& world, const std::vector<Draw>& draws) {
  StateMachine machine({}, world.version);
  Reference reference(world.version);
  grant_leases(world, machine, &reference);
  for (const auto& draw : draws) {
    if (draw.verb == Verb::restore) {
      const auto longest_ttl = milliseconds(200 + 200 * (draw.pick % 4));
      machine = restored(machine.state(), longest_ttl);
      reference.restore(longest_ttl);
    }
    const auto before = machine.state();
    const auto [command, stamp] = move_of(draw, world, before);

    const auto applied = machine.apply(command, stamp);
    const auto expected = reference.step(command, stamp, applied);

    RC_ASSERT(applied.outcome.index() == expected.outcome.index());
    if (const auto* refused = std::get_if<Refused>(&applied.outcome)) {
      RC_ASSERT(refused->error.code == std::get<Refused>(expected.outcome).error.code);
    } else {
      RC_ASSERT(applied.outcome == expected.outcome);
    }
    RC_ASSERT(applied.notices == expected.notices);
    RC_ASSERT((applied.losses == expected.losses));
    RC_ASSERT(reference.differs_from(machine.state()) == "");
    RC_ASSERT(reference.deadlocked() == std::set<LeaseId>{});
    RC_ASSERT(applied.revision == machine.state().revision);
    RC_ASSERT(applied.visits <= visits_max(machine.state(), applied));
    RC_ASSERT(applied.search_visits <= search_visits_max(machine.state(), applied));
    RC_ASSERT(invariants::check_step(before, machine.state()) == std::vector<std::string>{});
    assert_sound(machine.state());
  }
}

}  // namespace tenure::core::model
