#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "support/core_commands.hpp"
#include "support/model_property.hpp"

namespace tenure::core::model {
namespace {

void behave_as_the_reference(int cases, const World& world) {
  tenure::model::check_property(cases, [&world] {
    const auto draws = *draws_in(world);

    compare(world, draws);
  });
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
  behave_as_the_reference(500, {.things = everything(),
                                .verbs = mostly_waiting(),
                                .agains = {Again::wait, Again::reenter},
                                .leases = 5,
                                .requests = 1000,
                                .pauses = 1});
}

// Permits are counted: somebody outside a circle may have some to give back. Whoever is refused was
// stuck, and nobody who waits ever is.
TEST(CoreModel, deadlocks_over_permits_are_found_as_by_the_reference) {
  auto things = semaphores();
  things.push_back(names().front());
  things.push_back({semaphores()[0][0], semaphores()[1][0]});
  behave_as_the_reference(800, {.things = things,
                                .verbs = mostly_waiting(),
                                .agains = {Again::refuse, Again::wait},
                                .leases = 5,
                                .requests = 1000,
                                .pauses = 1});
}

TEST(CoreModel, deadlocks_over_names_are_found_as_by_the_reference) {
  behave_as_the_reference(500, {.things = names(),
                                .verbs = mostly_waiting(),
                                .agains = {Again::wait, Again::reenter},
                                .leases = 5,
                                .requests = 1000,
                                .pauses = 1});
}

// 002-B32, FAULTS X: few request ids, so that most are retries.
TEST(CoreModel, retries_behave_as_the_reference) {
  behave_as_the_reference(
      300, {.things = everything(), .verbs = all_verbs(), .leases = 2, .requests = 6});
}

}  // namespace
}  // namespace tenure::core::model
