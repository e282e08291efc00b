#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "core/batch.hpp"
#include "core/state_machine.hpp"
#include "support/core/any_batch.hpp"
#include "support/core/commands.hpp"
#include "support/model/property.hpp"

namespace tenure::core::model {
namespace {

using tenure::model::check_property;

// 002.091, 002.092, 002.093
TEST(CoreBatchModel, any_batch_survives_a_round_trip) {
  check_property(500, [] {
    const auto batch = *any_batch();

    const auto decoded = decode_batch(encode(batch));

    RC_ASSERT(decoded.has_value());
    RC_ASSERT((*decoded == batch));
  });
}

TEST(CoreBatchModel, damaged_batches_are_refused_or_have_one_form_and_can_be_applied) {
  check_property(500, [] {
    auto bytes = encode(*any_batch());
    RC_ASSERT(!decode_batch(bytes.substr(0, *rc::gen::inRange<std::size_t>(0, bytes.size()))));
    for (int flips = *rc::gen::inRange(1, 6); flips > 0; --flips) {
      const auto at = *rc::gen::inRange<std::size_t>(0, bytes.size());
      bytes[at] = static_cast<char>(bytes[at] ^ *rc::gen::inRange(1, 256));
    }

    const auto batch = decode_batch(bytes);

    if (batch) {
      RC_ASSERT(encode(*batch) == bytes);
      StateMachine machine;
      for (const auto& command : batch->commands) {
        machine.apply(command, batch->stamp);
      }
      assert_sound(machine.state());
    }
  });
}

TEST(CoreBatchModel, noise_is_refused_or_has_one_form) {
  check_property(1000, [] {
    auto noise = *rc::gen::arbitrary<std::vector<char>>();
    noise.insert(noise.begin(), static_cast<char>(newest_version.get()));
    const std::string bytes(noise.begin(), noise.end());

    if (const auto batch = decode_batch(bytes)) {
      RC_ASSERT(encode(*batch) == bytes);
    }
  });
}

}  // namespace
}  // namespace tenure::core::model
