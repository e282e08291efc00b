#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "support/model/commands.hpp"
#include "support/model/property.hpp"

namespace tenure::model {
namespace {

using Verbs = std::vector<std::pair<std::size_t, Verb>>;

Verbs without_queues() {
  return {{6, Verb::try_acquire}, {4, Verb::release}, {1, Verb::release_all}};
}

void equal_the_reference(int cases, const World& world) {
  check_property(cases, [&world] {
    const auto commands = *commands_in(world);

    Comparison(world).run(commands);
  });
}

// 004.093, 004.014 to 004.023: any difference in a grant, a refusal or a count.
TEST(PointModel, numbered_resources_without_waiters_equal_the_reference) {
  equal_the_reference(400, {.things = two_numbers(), .verbs = without_queues()});
}

// 004.093, 004-B19: names that are prefixes of each other or contain any byte.
TEST(PointModel, named_resources_without_waiters_equal_the_reference) {
  equal_the_reference(400, {.things = three_names(), .verbs = without_queues()});
}

// 004.093, 004.016, 004.019, 004-B13, 004-B14, 004-B24: one resource, all modes, so that most
// grants are upgrades; counts and modes after downgrades.
TEST(PointModel, upgrades_and_downgrades_equal_the_reference) {
  equal_the_reference(600, {.things = {ResourceId{7}},
                            .verbs = {{6, Verb::try_acquire},
                                      {3, Verb::request},
                                      {4, Verb::downgrade},
                                      {2, Verb::release},
                                      {1, Verb::cancel_wait}},
                            .txns = 3});
}

// 004.093, 004.029 to 004.034, 004-B2, 004-B10: order of the queue, hand-over, claims,
// cancellations, replaced requests, several waits of one transaction.
TEST(PointModel, queues_equal_the_reference) {
  equal_the_reference(800, {.things = two_numbers(), .verbs = all_verbs()});
}

// 004.093: a long queue of many transactions on one resource.
TEST(PointModel, a_long_queue_equals_the_reference) {
  equal_the_reference(300, {.things = {ResourceId{7}},
                            .verbs = {{1, Verb::try_acquire},
                                      {8, Verb::request},
                                      {2, Verb::release},
                                      {1, Verb::cancel_wait}},
                            .txns = 12});
}

// 004.093: waiters for names move from one table to the other when the last holder leaves.
TEST(PointModel, queues_for_names_equal_the_reference) {
  equal_the_reference(600, {.things = three_names(), .verbs = all_verbs()});
}

// 004.093, 004.022, 004.023: after any history, release_all returns the count of the reference and
// leaves nothing of this transaction and everything of the others.
TEST(PointModel, release_all_equals_the_reference) {
  const World world{.things = one_of_each_kind(), .verbs = all_verbs()};
  check_property(400, [&world] {
    const auto history = *commands_in(world);
    Comparison both(world);
    both.run(history);

    for (std::size_t txn = 1; txn <= world.txns; ++txn) {
      const Command end{Verb::release_all, TxnId{txn}, world.things[0], LockMode::shared};
      both.run({end});
      RC_ASSERT(both.manager().release_all(TxnId{txn}) == 0U);
    }

    RC_ASSERT(both.manager().snapshot().locks.empty());
    RC_ASSERT(both.manager().waiting_count() == 0U);
  });
}

// 004.093: the four kinds of targets never meet, though they share numbers and texts.
TEST(PointModel, all_kinds_together_equal_the_reference) {
  equal_the_reference(600, {.things = one_of_each_kind(), .verbs = all_verbs()});
}

}  // namespace
}  // namespace tenure::model
