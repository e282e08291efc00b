#include <cstdlib>

#include <gtest/gtest.h>

#include "core/batch.hpp"
#include "core/invariants.hpp"
#include "core/snapshot.hpp"
#include "core/state_machine.hpp"
#include "support/core_fixtures.hpp"

// The files in tests/fixtures were written by this program (docs/snapshot_format.md):
//
//     TENURE_WRITE_FIXTURES=1 build/dev/tests/tenure_unit --gtest_filter='CoreFormats.*'
//
// They are written anew only when a version is raised, under a new name; the old ones stay.

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

}  // namespace
}  // namespace tenure::core
