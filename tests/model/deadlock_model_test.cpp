#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "support/model/commands.hpp"
#include "support/model/property.hpp"

namespace tenure::model {
namespace {

using Verbs = std::vector<std::pair<std::size_t, Verb>>;

Verbs mostly_waiting() {
  return {{2, Verb::try_acquire},
          {8, Verb::request},
          {1, Verb::cancel_wait},
          {1, Verb::release},
          {1, Verb::release_all}};
}

Verbs with_find_deadlock() {
  auto verbs = mostly_waiting();
  verbs.emplace_back(1, Verb::find_deadlock);
  return verbs;
}

/// Every resolution must be lawful: a real cycle, its youngest member as victim, no victim where a
/// grant out of turn was enough, no cycle left.
void check_resolutions(int cases, const World& world) {
  check_property(cases, [&world] {
    const auto commands = *commands_in(world);

    Comparison(world).run(commands);
  });
}

// 004.093, 004.029 to 004.033, 004-B7 to 004-B10
TEST(DeadlockModel, exclusive_requests_for_numbers_resolve_lawfully) {
  check_resolutions(600, {.things = {ResourceId{1}, ResourceId{2}, ResourceId{3}},
                          .verbs = mostly_waiting(),
                          .modes = {LockMode::exclusive},
                          .detection = Detection::at_wait});
}

// 004.093, 004-B18, 004-B24: all modes, so that upgrades meet and queue order closes cycles.
TEST(DeadlockModel, requests_in_all_modes_resolve_lawfully) {
  check_resolutions(1000, {.things = {ResourceId{1}, ResourceId{2}},
                           .verbs = mostly_waiting(),
                           .detection = Detection::at_wait});
}

// 004.093, 004-B3, 004-B4
TEST(DeadlockModel, requests_for_ranges_resolve_lawfully) {
  auto things = some_keys();
  things.resize(4);
  check_resolutions(800, {.things = things,
                          .verbs = mostly_waiting(),
                          .modes = {LockMode::shared, LockMode::exclusive},
                          .detection = Detection::at_wait});
}

// 004.093: a cycle may lead through all four kinds of targets.
TEST(DeadlockModel, cycles_through_all_kinds_of_targets_resolve_lawfully) {
  check_resolutions(800, {.things = one_of_each_kind(),
                          .verbs = mostly_waiting(),
                          .txns = 5,
                          .detection = Detection::at_wait});
}

// 004.093, 004.035, 004.036: find_deadlock finds a cycle whenever there is one, and no other.
TEST(DeadlockModel, find_deadlock_resolves_lawfully) {
  check_resolutions(800, {.things = {ResourceId{1}, ResourceId{2}, std::string("3")},
                          .verbs = with_find_deadlock(),
                          .txns = 5});
}

// 004.093, 004-B10: many waits of one transaction, longer cycles.
TEST(DeadlockModel, longer_cycles_resolve_lawfully) {
  std::vector<Thing> things;
  for (std::uint64_t number = 0; number < 8; ++number) {
    things.emplace_back(ResourceId{number});
  }
  check_resolutions(500, {.things = things,
                          .verbs = mostly_waiting(),
                          .modes = {LockMode::exclusive, LockMode::shared},
                          .txns = 7,
                          .detection = Detection::at_wait});
}

}  // namespace
}  // namespace tenure::model
