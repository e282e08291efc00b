#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "support/core/commands.hpp"
#include "support/core/cost.hpp"
#include "support/model/property.hpp"

namespace tenure::core::model {
namespace {

/// Lease i holds a lock and a permit, and waits for the lock of lease i + steps[i] if there is one.
/// A search from another lease, which waits for a permit, meets all of them.
void assert_linear_search(const std::vector<std::uint64_t>& steps) {
  const auto lock = [](std::uint64_t i) {
    return Item{.name = "lock " + std::to_string(i), .claim = Whole{}};
  };
  const Item permit{.name = "semaphore",
                    .claim = Permits{.capacity = static_cast<std::uint32_t>(steps.size())}};
  StateMachine machine({}, newest_version);
  std::uint64_t request = 0;
  const auto want = [&](std::uint64_t lease, std::vector<Item> items) {
    return machine.apply(Acquire{.lease = LeaseId{1 + lease},
                                 .request = RequestId{++request},
                                 .items = std::move(items)},
                         {});
  };
  for (std::uint64_t i = 0; i <= steps.size(); ++i) {
    machine.apply(GrantLease{.id = LeaseId{1 + i}, .ttl = std::chrono::seconds(1)}, {});
  }
  const auto start = steps.size();
  want(start, {lock(start)});
  for (std::uint64_t i = 0; i < steps.size(); ++i) {
    want(i, {lock(i), permit});
  }
  for (auto i = steps.size(); i-- > 0;) {
    if (i + steps[i] < steps.size()) {
      want(i, {lock(i + steps[i])});
    }
  }
  want(0, {lock(start)});

  const auto step = want(start, {permit});

  RC_ASSERT(std::holds_alternative<Queued>(step.outcome));
  constexpr std::uint64_t factor = 8;
  RC_ASSERT(step.visits <= factor * size_of(machine.state(), step));
  assert_sound(machine.state());
}

/// In the oldest and in the newest version.
void behave_as_the_reference(int cases, World world) {
  for (const auto version : {oldest_version, newest_version}) {
    world.version = version;
    tenure::model::check_property(cases, [&world] {
      const auto draws = *draws_in(world);

      compare(world, draws);
    });
  }
}

// 002.058-068, 002.074-080: names in all modes, with upgrades, expiry and retries.
TEST(CoreModel, names_in_all_modes_behave_as_the_reference) {
  behave_as_the_reference(400, {.things = names(), .verbs = all_verbs()});
}

// 002.059, 002.066, 002.079: the plain mutex and read-write lock.
TEST(CoreModel, shared_and_exclusive_locks_behave_as_the_reference) {
  behave_as_the_reference(
      300,
      {.things = names(), .verbs = all_verbs(), .modes = {LockMode::shared, LockMode::exclusive}});
}

TEST(CoreModel, ranges_behave_as_the_reference) {
  behave_as_the_reference(
      300,
      {.things = ranges(), .verbs = all_verbs(), .modes = {LockMode::shared, LockMode::exclusive}});
}

TEST(CoreModel, semaphores_behave_as_the_reference) {
  behave_as_the_reference(300, {.things = semaphores(), .verbs = all_verbs()});
}

TEST(CoreModel, several_items_at_once_behave_as_the_reference) {
  behave_as_the_reference(400, {.things = several_at_once(),
                                .verbs = all_verbs(),
                                .modes = {LockMode::shared, LockMode::exclusive}});
}

TEST(CoreModel, everything_together_behaves_as_the_reference) {
  behave_as_the_reference(500, {.things = everything(), .verbs = all_verbs(), .leases = 6});
}

// Deadlocks: time stands still and requests are always new, so that circles close.
TEST(CoreModel, deadlocks_over_all_shapes_are_found_as_by_the_reference) {
  behave_as_the_reference(300, {.things = everything(),
                                .verbs = mostly_waiting(),
                                .self_conflicts = {SelfConflict::wait, SelfConflict::reenter},
                                .leases = 5,
                                .requests = 1000,
                                .pauses = 1});
}

// Permits are counted: a lease outside of a cycle may hold some and release them. Every refused
// lease was deadlocked, and no waiting lease ever is.
TEST(CoreModel, deadlocks_over_permits_are_found_as_by_the_reference) {
  auto things = semaphores();
  things.push_back(names().front());
  things.push_back({semaphores()[0][0], semaphores()[1][0]});
  behave_as_the_reference(300, {.things = things,
                                .verbs = mostly_waiting(),
                                .self_conflicts = {SelfConflict::refuse, SelfConflict::wait},
                                .leases = 5,
                                .requests = 1000,
                                .pauses = 1});
}

TEST(CoreModel, deadlocks_over_names_are_found_as_by_the_reference) {
  behave_as_the_reference(300, {.things = names(),
                                .verbs = mostly_waiting(),
                                .self_conflicts = {SelfConflict::wait, SelfConflict::reenter},
                                .leases = 5,
                                .requests = 1000,
                                .pauses = 1});
}

// 002-B32, property X: few request ids, so that most are retries.
TEST(CoreModel, retries_behave_as_the_reference) {
  behave_as_the_reference(
      300, {.things = everything(), .verbs = all_verbs(), .leases = 2, .requests = 6});
}

// Small quotas, in total and for each user. Requests are new: the answers that a small quota makes
// the store forget are not part of the reference.
TEST(CoreModel, a_state_with_a_quota_behaves_as_the_reference) {
  behave_as_the_reference(300, {.things = everything(),
                                .verbs = all_verbs_and({Verb::set_limits, Verb::grant_lease}),
                                .leases = 6,
                                .has_retries = false});
}

TEST(CoreModel, a_state_that_is_restored_from_a_backup_behaves_as_the_reference) {
  behave_as_the_reference(300, {.things = everything(),
                                .verbs = all_verbs_and({Verb::restore, Verb::confirm}),
                                .leases = 5});
}

TEST(CoreModel, a_state_whose_version_changes_behaves_as_the_reference) {
  behave_as_the_reference(
      300,
      {.things = everything(),
       .verbs = all_verbs_and({Verb::set_version, Verb::set_limits, Verb::restore, Verb::confirm}),
       .leases = 5,
       .has_retries = false});
}

// Many leases hold permits of one semaphore and turn out not to be stuck one after the other.
TEST(CoreModel, the_cost_of_a_search_for_deadlocked_leases_is_linear) {
  tenure::model::check_property(10, [] {
    const auto count = *rc::gen::inRange<std::uint64_t>(200, 400);
    const auto steps = *rc::gen::container<std::vector<std::uint64_t>>(
        count, rc::gen::inRange<std::uint64_t>(1, 4));

    assert_linear_search(steps);
  });
}

}  // namespace
}  // namespace tenure::core::model
