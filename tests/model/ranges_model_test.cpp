#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "support/model/commands.hpp"
#include "support/model/property.hpp"

namespace tenure::model {
namespace {

using Verbs = std::vector<std::pair<std::size_t, Verb>>;

Verbs without_queues() {
  return {{6, Verb::try_acquire}, {4, Verb::release}, {1, Verb::release_all}, {1, Verb::downgrade}};
}

void equal_the_reference(int cases, const World& world) {
  check_property(cases, [&world] {
    const auto commands = *commands_in(world);

    Comparison(world).run(commands);
  });
}

// 004.093, 004.025 to 004.028, 004.091: overlaps, both ends of the key space, last acquired first.
TEST(RangeModel, ranges_of_keys_without_waiters_equal_the_reference) {
  equal_the_reference(500, {.things = some_keys(), .verbs = without_queues()});
}

// 004.093, 004-B20: the same over byte strings, with prefixes and open ends.
TEST(RangeModel, ranges_of_bytes_without_waiters_equal_the_reference) {
  equal_the_reference(500, {.things = some_bytes(), .verbs = without_queues()});
}

// 004.093, 004-B3, 004-B4: ranges that wait: order among those that overlap, none among others.
TEST(RangeModel, queues_of_keys_equal_the_reference) {
  equal_the_reference(800, {.things = some_keys(), .verbs = all_verbs()});
}

// 004.093, 004-B20
TEST(RangeModel, queues_of_bytes_equal_the_reference) {
  equal_the_reference(800, {.things = some_bytes(), .verbs = all_verbs()});
}

// 004.093, 004-B21: few ranges, so that most requests lie inside a range already held.
TEST(RangeModel, upgrades_of_ranges_equal_the_reference) {
  auto things = some_keys();
  things.resize(3);
  equal_the_reference(800, {.things = things, .verbs = all_verbs(), .txns = 3});
}

/// A random range with ends below 64, so that trees of many entries get every shape.
Thing any_keys(std::pair<std::uint64_t, std::uint64_t> ends) {
  const auto [low, high] = std::minmax(ends.first, ends.second);
  return KeysOf{.space = ResourceId{1}, .range = KeyRange::of(low, high).value()};
}

// 004.093, 004-B5: many live ranges, against the linear scan.
TEST(RangeModel, many_random_ranges_equal_the_reference) {
  check_property(150, [] {
    World world{.things = {}, .verbs = without_queues(), .txns = 8};
    const auto end = rc::gen::inRange<std::uint64_t>(0, 64);
    const auto ends =
        *rc::gen::nonEmpty(rc::gen::container<std::vector<std::pair<std::uint64_t, std::uint64_t>>>(
            rc::gen::pair(end, end)));
    for (const auto& pair : ends) {
      world.things.push_back(any_keys(pair));
    }
    const auto commands = *commands_in(world);

    Comparison(world).run(commands);
  });
}

}  // namespace
}  // namespace tenure::model
