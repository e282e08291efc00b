#include <algorithm>
#include <cstdlib>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "core/batch.hpp"
#include "core/invariants.hpp"
#include "core/snapshot.hpp"
#include "core/state_machine.hpp"
#include "support/core/fixtures.hpp"

// The files in tests/fixtures were written by this program (docs/reference/snapshot_format.md):
//
//     TENURE_WRITE_FIXTURES=1 build/dev/tests/tenure_unit --gtest_filter='CoreFormats.*'
//
// A new version gets files with new names; the old ones stay.

namespace tenure::core {
namespace {

class CoreFormats : public ::testing::Test {
 protected:
  static std::string fixture(const std::string& name, const std::string& bytes) {
    if (std::getenv("TENURE_WRITE_FIXTURES") != nullptr) {
      write_fixture(name, bytes);
    }
    return read_fixture(name);
  }
};

// A snapshot or a log that an earlier program wrote must be readable. If this fails, the layout was
// changed: raise the version and keep the reader of the old one.
TEST_F(CoreFormats, the_checked_in_snapshot_is_restored) {
  const auto expected = encode(fixture_state());
  const auto bytes = fixture("snapshot_v2.bin", expected);

  const auto state = decode(bytes);

  ASSERT_TRUE(state.has_value()) << state.error().detail;
  EXPECT_TRUE(bytes == expected) << "the same state has other bytes than it had";
  EXPECT_EQ(state->locks.holds(), fixture_state().locks.holds());
  EXPECT_EQ(state->locks.waits(), fixture_state().locks.waits());
  EXPECT_EQ(state->limits, fixture_limits());
  EXPECT_EQ(state->leases.ended(), fixture_state().leases.ended());
}

TEST_F(CoreFormats, the_checked_in_snapshot_of_version_1_is_restored) {
  const auto state = decode(read_fixture("snapshot_v1.bin"));

  ASSERT_TRUE(state.has_value()) << state.error().detail;
  EXPECT_EQ(state->locks.holds(), fixture_state().locks.holds());
  EXPECT_EQ(state->locks.waits(), fixture_state().locks.waits());
  EXPECT_EQ(state->leases.all().size(), fixture_state().leases.all().size());
  EXPECT_TRUE(state->leases.ended().empty()) << "it did not remember them";
}

TEST_F(CoreFormats, the_checked_in_snapshot_of_format_3_is_restored) {
  const auto bytes = fixture("snapshot_v3.bin", encode(fixture_state_2()));
  const auto expected = fixture_state_2();

  const auto state = decode(bytes);

  ASSERT_TRUE(state.has_value()) << state.error().detail;
  EXPECT_TRUE(bytes == encode(expected)) << "the same state has other bytes than it had";
  EXPECT_TRUE(encode(*state) == bytes) << "what was read is written in another way";
  EXPECT_EQ(state->version, version_2);
  EXPECT_EQ(state->limits, expected.limits);
  EXPECT_EQ(state->locks.holds(), expected.locks.holds());
  EXPECT_EQ(state->locks.waits(), expected.locks.waits());
  EXPECT_EQ(state->leases.ended(), expected.leases.ended());
  EXPECT_EQ(state->restoration, expected.restoration);
  EXPECT_EQ(state->leases.usage(), expected.leases.usage());
  EXPECT_EQ(state->leases.find(LeaseId{91})->user, "eve");
}

TEST_F(CoreFormats, the_fixture_of_format_3_has_all_that_version_2_adds) {
  const auto state = fixture_state_2();

  EXPECT_EQ(invariants::check(state), std::vector<std::string>{});
  EXPECT_EQ(state.locks.waits().size(), 2U);
  EXPECT_GE(state.restoration.unconfirmed.size(), 2U);
  EXPECT_GT(state.leases.ended().back().ended, ClusterTime{});
  EXPECT_TRUE(std::ranges::any_of(state.events.all().in_order(), [](const Event& event) {
    return event.user == "eve" && event.operator_name == "root" && event.reason == "a test";
  }));
  std::set<std::size_t> answers;
  bool has_finished_times = false;
  for (const auto& [id, lease] : state.leases.all()) {
    lease->history.for_each([&](RequestId, const History::Entry& entry) {
      answers.insert(entry.answer.index());
      has_finished_times = has_finished_times || entry.finished > ClusterTime{};
    });
  }
  EXPECT_EQ(answers.size(), std::variant_size_v<Answer>);
  EXPECT_TRUE(has_finished_times);
}

// The fixture would prove little if it were small.
TEST_F(CoreFormats, the_fixture_has_one_of_everything) {
  const auto state = fixture_state();

  EXPECT_EQ(invariants::check(state), std::vector<std::string>{});
  EXPECT_EQ(state.leases.all().size(), 4U);
  EXPECT_EQ(state.leases.ended().size(), 1U);
  EXPECT_GE(state.locks.holds().size(), 3U);
  EXPECT_GE(state.locks.waits().size(), 3U);
  EXPECT_GT(state.events.all().size(), 5U);
  EXPECT_GT(state.events.compact_revision(), Revision{});
  std::set<std::size_t> answers;
  for (const auto& [id, lease] : state.leases.all()) {
    lease->history.for_each(
        [&](RequestId, const History::Entry& entry) { answers.insert(entry.answer.index()); });
  }
  EXPECT_EQ(answers, (std::set<std::size_t>{0, 1, 2, 3})) << "waiting, granted, released, refused";
}

TEST_F(CoreFormats, the_checked_in_batch_is_read) {
  const auto expected = encode(fixture_batch());
  const auto bytes = fixture("batch_v1.bin", expected);

  const auto batch = decode_batch(bytes);

  ASSERT_TRUE(batch.has_value()) << batch.error().detail;
  EXPECT_EQ(*batch, fixture_batch());
  EXPECT_TRUE(bytes == expected) << "the same batch has other bytes than it had";
}

TEST_F(CoreFormats, the_checked_in_batch_of_version_2_is_read) {
  const auto expected = encode(fixture_batch_2());
  const auto bytes = fixture("batch_v2.bin", expected);

  const auto batch = decode_batch(bytes);

  ASSERT_TRUE(batch.has_value()) << batch.error().detail;
  EXPECT_EQ(*batch, fixture_batch_2());
  EXPECT_TRUE(bytes == expected) << "the same batch has other bytes than it had";
  std::set<std::size_t> kinds;
  for (const auto& command : batch->commands) {
    kinds.insert(command.index());
  }
  EXPECT_EQ(kinds.size(), std::variant_size_v<Command>) << "a kind of command is not in it";
}

}  // namespace
}  // namespace tenure::core
