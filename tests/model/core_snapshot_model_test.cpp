#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "core/snapshot.hpp"
#include "support/core/commands.hpp"
#include "support/model/property.hpp"

namespace tenure::core::model {
namespace {

using tenure::model::check_property;

World any_world() {
  return {.things = everything(), .verbs = all_verbs(), .leases = 5};
}

StateMachine begin(const World& world) {
  StateMachine machine;
  grant_leases(world, machine, nullptr);
  return machine;
}

// 002.094, 002.102: all nodes converge.
TEST(CoreSnapshotModel, the_same_log_gives_the_same_bytes) {
  check_property(300, [] {
    const auto world = any_world();
    const auto draws = *draws_in(world);
    auto one = begin(world);
    auto other = begin(world);

    for (const auto& draw : draws) {
      const auto [command, stamp] = move_of(draw, world, one.state());
      RC_ASSERT(one.apply(command, stamp) == other.apply(command, stamp));
      RC_ASSERT(encode(one.state()) == encode(other.state()));
    }
  });
}

// 002.107: at every step, so at every point.
TEST(CoreSnapshotModel, a_restored_store_behaves_as_the_one_that_was_saved) {
  check_property(300, [] {
    const auto world = any_world();
    const auto draws = *draws_in(world);
    const auto every = *rc::gen::inRange<std::size_t>(1, 8);
    auto kept = begin(world);
    auto restored = begin(world);

    for (std::size_t i = 0; i < draws.size(); ++i) {
      if (i % every == 0) {
        const auto bytes = encode(restored.state());
        auto state = decode(bytes);
        RC_ASSERT(state.has_value());
        RC_ASSERT(encode(*state) == bytes);
        restored = StateMachine(*std::move(state));
      }
      const auto [command, stamp] = move_of(draws[i], world, kept.state());
      RC_ASSERT(kept.apply(command, stamp) == restored.apply(command, stamp));
      RC_ASSERT(encode(kept.state()) == encode(restored.state()));
    }
  });
}

// A snapshot is written while the store goes on: nothing that is changed may still be shared.
TEST(CoreSnapshotModel, an_image_stays_as_it_was_whatever_happens_afterwards) {
  check_property(300, [] {
    const auto world = any_world();
    const auto draws = *draws_in(world);
    const auto every = *rc::gen::inRange<std::size_t>(1, 8);
    auto imaged = begin(world);
    auto alone = begin(world);
    std::vector<std::pair<Image, std::string>> images;

    for (std::size_t i = 0; i < draws.size(); ++i) {
      if (i % every == 0) {
        images.emplace_back(image_of(imaged.state()), encode(alone.state()));
      }
      const auto [command, stamp] = move_of(draws[i], world, imaged.state());
      RC_ASSERT(imaged.apply(command, stamp) == alone.apply(command, stamp));
    }

    RC_ASSERT(encode(imaged.state()) == encode(alone.state()));
    for (const auto& [image, bytes] : images) {
      RC_ASSERT(encode(image) == bytes);
    }
  });
}

TEST(CoreSnapshotModel, damaged_snapshots_are_refused) {
  check_property(300, [] {
    const auto world = any_world();
    auto machine = begin(world);
    for (const auto& draw : *draws_in(world)) {
      const auto [command, stamp] = move_of(draw, world, machine.state());
      machine.apply(command, stamp);
    }
    auto bytes = encode(machine.state());
    const auto at = *rc::gen::inRange<std::size_t>(0, bytes.size());
    const auto change = *rc::gen::inRange(1, 256);
    const auto size = *rc::gen::inRange<std::size_t>(0, bytes.size());

    RC_ASSERT(!decode(bytes.substr(0, size)).has_value());
    bytes[at] = static_cast<char>(bytes[at] ^ change);
    RC_ASSERT(!decode(bytes).has_value());
  });
}

}  // namespace
}  // namespace tenure::core::model
