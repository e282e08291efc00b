#include <gtest/gtest.h>

#include "core/batch.hpp"
#include "core/snapshot.hpp"
#include "support/core/machine.hpp"

namespace tenure::core {
namespace {

class CoreVersion : public CoreTest {
 protected:
  Outcome set_version(ClusterVersion version) {
    return apply(SetClusterVersion{version}, seconds(1)).outcome;
  }
  /// A state with a user, an event that names an operator, and finished requests.
  void fill() {
    apply(GrantLease{.id = LeaseId{1},
                     .request = RequestId{9},
                     .ttl = seconds(60),
                     .client = "ann/app",
                     .user = "ann"});
    apply(Acquire{
        .lease = LeaseId{1}, .request = RequestId{1}, .items = {{.name = "a", .claim = Whole{}}}});
    apply(ForceRelease{.resource = {.name = "a"}, .operator_name = "root", .reason = "deadlocked"});
    apply(GrantLease{.id = LeaseId{2}, .request = RequestId{9}, .ttl = seconds(60)});
    apply(RevokeLease{LeaseId{2}});
  }
};

// Members that run another program would otherwise not have the same first state.
TEST_F(CoreVersion, a_new_state_has_the_oldest_version) {
  EXPECT_EQ(machine.state().version, oldest_version);
}

TEST_F(CoreVersion, a_version_that_this_program_does_not_know_is_refused) {
  EXPECT_TRUE(std::holds_alternative<Refused>(set_version(ClusterVersion{0})));
  const auto next = ClusterVersion{newest_version.get() + 1};
  EXPECT_TRUE(std::holds_alternative<Refused>(set_version(next)));
  EXPECT_EQ(machine.state().version, oldest_version);
}

// A leader applies the command it holds in memory, a follower the bytes of the log, which do not
// have the new fields. Both must get the same state.
TEST_F(CoreVersion, version_1_ignores_fields_that_its_formats_do_not_have) {
  fill();
  apply(SetLimits{.limits = {.leases_max = 7, .state_bytes_max = 123}});

  EXPECT_TRUE(machine.state().leases.find(LeaseId{1})->user.empty());
  EXPECT_EQ(machine.state().limits, (Limits{.leases_max = 7}));
  EXPECT_TRUE(machine.state().events.all().back().operator_name.empty());
  const auto restored = decode(encode(machine.state())).value();
  EXPECT_EQ(encode(restored), encode(machine.state()));
  EXPECT_EQ(restored.leases.ended(), machine.state().leases.ended());
  EXPECT_EQ(restored.limits, machine.state().limits);
}

TEST_F(CoreVersion, version_2_records_users_operators_and_times) {
  set_version(version_2);
  fill();

  const auto restored = decode(encode(machine.state())).value();
  for (const auto& state : {machine.state(), restored}) {
    EXPECT_EQ(state.version, version_2);
    EXPECT_EQ(state.leases.find(LeaseId{1})->user, "ann");
    EXPECT_EQ(state.events.all().back().operator_name, "root");
    EXPECT_EQ(state.events.all().back().reason, "deadlocked");
    EXPECT_EQ(state.events.all().back().user, "ann");
    EXPECT_GT(state.leases.ended().back().ended, ClusterTime{});
    const auto entry = state.leases.find(LeaseId{1})->history.find(RequestId{1});
    EXPECT_GT(entry->finished, ClusterTime{});
  }
}

// One member may have been restored from a snapshot of version 1, another one never.
TEST_F(CoreVersion, a_restored_and_an_unrestored_state_are_equal_after_an_upgrade) {
  fill();
  StateMachine restored(decode(encode(machine.state())).value());

  const Stamp stamp{.time = machine.state().now + seconds(1)};
  machine.apply(SetClusterVersion{version_2}, stamp);
  restored.apply(SetClusterVersion{version_2}, stamp);

  EXPECT_EQ(encode(machine.state()), encode(restored.state()));
}

TEST_F(CoreVersion, a_downgraded_state_is_written_in_the_format_of_its_version) {
  set_version(version_2);
  fill();
  set_version(version_1);

  const auto bytes = encode(machine.state());

  EXPECT_EQ(static_cast<std::uint32_t>(bytes[8]), snapshot_format(version_1));
  const auto restored = decode(bytes).value();
  EXPECT_EQ(encode(restored), bytes);
}

TEST_F(CoreVersion, a_batch_is_read_in_the_version_it_was_written_in) {
  Batch batch{.commands = {GrantLease{.id = LeaseId{1}, .user = "ann"}}};

  EXPECT_EQ(std::get<GrantLease>(decode_batch(encode(batch)).value().commands[0]).user, "");
  batch.version = version_2;
  EXPECT_EQ(decode_batch(encode(batch)).value(), batch);
}

TEST_F(CoreVersion, a_batch_of_version_1_has_no_commands_of_version_2) {
  auto bytes = encode({.version = version_2, .commands = {SetClusterVersion{version_2}}});
  ASSERT_TRUE(decode_batch(bytes).has_value());

  bytes[0] = 1;

  EXPECT_FALSE(decode_batch(bytes).has_value());
}

}  // namespace
}  // namespace tenure::core
